package acme;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;

/** Counts: each task writes the numbers up to {@code count}, and goes on from its offset. */
public class CountingSource extends SourceConnector {
    static final ConfigDef CONFIG = new ConfigDef()
        .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "Where the numbers go.")
        .define("count", ConfigDef.Type.LONG, 100L, ConfigDef.Importance.HIGH, "The number after the last.")
        .define("pause.ms", ConfigDef.Type.LONG, 0L, ConfigDef.Importance.LOW, "How long to wait between some numbers.")
        .define("fail.at", ConfigDef.Type.LONG, -1L, ConfigDef.Importance.LOW, "The number that cannot be counted.")
        .define("hang.at.stop", ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.LOW, "Whether no poll returns.")
        .define("hang.in", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "The method that waits for the cue.")
        .define("hang.until", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "The file that is the cue.")
        .define("mishap", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "What goes wrong.")
        .define("mishap.in", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "The method in which it does.")
        .define("mishap.until", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "The file after which it does not.")
        .define("lines", ConfigDef.Type.LONG, 0L, ConfigDef.Importance.LOW, "How many lines are logged at once.")
        .define("secret", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "What nobody may see.");

    private Map<String, String> props;

    @Override
    public String version() {
        Cue.awaitEndOf("version");
        return "7.1-" + Tally.NAME;
    }

    @Override
    public void start(Map<String, String> given) {
        props = given;
        Mishap.befall(props, "connector start");
    }

    @Override
    public Class<? extends Task> taskClass() {
        return CountingTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        Mishap.befall(props, "taskConfigs");
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < most; task++) {
            Map<String, String> config = new HashMap<>(props);
            config.put("part", String.valueOf(task));
            configs.add(config);
        }
        return configs;
    }

    @Override
    public void stop() {
        Mishap.befall(props, "connector stop");
    }

    @Override
    public ConfigDef config() {
        Cue.awaitEndOf("config");
        return CONFIG;
    }

    @Override
    public Config validate(Map<String, String> given) {
        Mishap.befall(given, "validate");
        return super.validate(given);
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> given) {
        return ConnectorTransactionBoundaries.UNSUPPORTED;
    }

    @Override
    public boolean alterOffsets(Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        for (Map<String, ?> offset : offsets.values()) {
            if (offset != null && !(offset.get("next") instanceof Number)) {
                throw new ConfigException("next has to be a number");
            }
        }
        return true;
    }
}
