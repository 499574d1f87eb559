package acme;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Appends the values to a file. */
public class CollectingSink extends SinkConnector {
    private Map<String, String> props;

    @Override
    public String version() {
        return "7.1";
    }

    @Override
    public void start(Map<String, String> given) {
        props = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return CollectingTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.nCopies(most, props);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef().define("file", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "The file.");
    }

    /** Its task. */
    public static class CollectingTask extends SinkTask {
        private Map<String, String> props;

        @Override
        public String version() {
            return "7.1";
        }

        @Override
        public void start(Map<String, String> given) {
            props = given;
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            if (!records.isEmpty()) {
                Mishap.befall(props, "put");
            }
            try {
                for (SinkRecord record : records) {
                    byte[] line = (record.value() + "\n").getBytes(StandardCharsets.UTF_8);
                    Path file = Path.of(props.get("file"));
                    Files.write(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                }
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }

        @Override
        public void stop() {
        }
    }
}
