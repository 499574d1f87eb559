package sluice;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;

/**
 * Has Spark's tasks write to S3 as uploads that stay incomplete, and notes which attempts at a task count.
 *
 * It is compiled into staging.jar: javac --release 17 -cp hadoop-client-api-3.4.2.jar, as tests/unit checks.
 */
public final class StagingCommitter extends FileOutputCommitter {
    private final Path output;
    private final Path work;

    public StagingCommitter(Path output, TaskAttemptContext context) throws IOException {
        super(output, context);
        this.output = output;
        int task = context.getTaskAttemptID().getTaskID().getId();
        String table = context.getConfiguration().get("sluice.staging.table");
        String folder = context.getConfiguration().get("sluice.staging.folder." + task);
        String place = folder == null ? table : table + "/" + folder;
        this.work = new Path(output, context.getTaskAttemptID() + "/__base/" + place);
    }

    @Override
    public Path getWorkPath() {
        return work;
    }

    @Override
    public void setupJob(JobContext context) {}

    @Override
    public void setupTask(TaskAttemptContext context) {}

    @Override
    public boolean needsTaskCommit(TaskAttemptContext context) {
        return true;
    }

    /** The suffix keeps S3A from making an upload of the note as well. */
    @Override
    public void commitTask(TaskAttemptContext context) throws IOException {
        String attempt = context.getTaskAttemptID().toString();
        Path note = new Path(output, "committed/" + attempt + ".pendingset");
        try (OutputStream stream = note.getFileSystem(context.getConfiguration()).create(note, true)) {
            stream.write(attempt.getBytes(StandardCharsets.US_ASCII));
        }
    }

    @Override
    public void abortTask(TaskAttemptContext context) {}

    @Override
    public void commitJob(JobContext context) {}

    @Override
    public void abortJob(JobContext context, JobStatus.State state) {}
}
