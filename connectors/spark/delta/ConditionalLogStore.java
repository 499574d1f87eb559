package sluice;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log in S3, of whose writers each version can be written by one: it is put if there is none yet.
 *
 * It is compiled into log_store.jar: javac --release 17 -cp hadoop-client-api and delta-storage, as tests/unit checks.
 */
public final class ConditionalLogStore extends S3SingleDriverLogStore {
    private static final String CONDITION = "fs.option.create.conditional.overwrite";

    public ConditionalLogStore(Configuration configuration) {
        super(configuration);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        if (overwrite) {
            super.write(path, actions, true, configuration);
            return;
        }
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            lines.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
        }
        put(path.getFileSystem(configuration), path, lines.toByteArray());
    }

    private static void put(FileSystem files, Path path, byte[] bytes) throws IOException {
        // All of it is there before the object is opened: one that is closed is put, whatever has been written.
        FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path).create();
        builder.must(CONDITION, true);
        FSDataOutputStream object = builder.build();
        object.write(bytes);
        try {
            object.close();
        } catch (IOException error) {
            // A put whose answer was lost is sent again, and finds what it has put itself. Each commit has an id.
            if (!files.exists(path)) {
                throw error;
            }
            if (!isThere(files, path, bytes)) {
                throw (IOException) new FileAlreadyExistsException(path.toString()).initCause(error);
            }
        }
    }

    private static boolean isThere(FileSystem files, Path path, byte[] bytes) throws IOException {
        try (FSDataInputStream object = files.open(path)) {
            return Arrays.equals(object.readAllBytes(), bytes);
        }
    }
}
