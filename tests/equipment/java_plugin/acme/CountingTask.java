package acme;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

public class CountingTask extends SourceTask {
    private static final Logger LOG = LoggerFactory.getLogger(CountingTask.class);
    private static final int AT_ONCE = 7;
    private Map<String, String> props;
    private Map<String, String> partition;
    private volatile long next;

    @Override
    public String version() {
        return "7.1-" + Tally.NAME;
    }

    @Override
    public void start(Map<String, String> given) {
        props = given;
        Mishap.befall(props, "start");
        partition = Map.of("part", given.get("part"));
        Map<String, Object> offset = context.offsetStorageReader().offset(partition);
        next = offset == null ? 0 : ((Number) offset.get("next")).longValue();
        Meter.register(props, () -> next);
        LOG.info("{} counts from {} with the secret {}", Tally.NAME, next, given.get("secret"));
    }

    @Override
    public List<SourceRecord> poll() throws InterruptedException {
        long count = Long.parseLong(props.getOrDefault("count", "100"));
        if (next >= count && Boolean.parseBoolean(props.get("hang.at.stop"))) {
            hang();
        }
        if (next >= count) {
            Mishap.befall(props, "poll");
            Thread.sleep(100);
            return null;
        }
        Thread.sleep(Long.parseLong(props.getOrDefault("pause.ms", "0")));
        List<SourceRecord> records = new ArrayList<>();
        while (next < count && records.size() < AT_ONCE) {
            if (next == Long.parseLong(props.getOrDefault("fail.at", "-1"))) {
                throw new ConnectException("cannot count " + next + " with the secret " + props.get("secret"));
            }
            String text = Tally.NAME + "-" + next;
            next = next + 1;
            Map<String, Long> offset = Map.of("next", next);
            records.add(new SourceRecord(partition, offset, props.get("topic"), null,
                Schema.STRING_SCHEMA, props.get("part"), Schema.STRING_SCHEMA, text));
        }
        return records;
    }

    private static void hang() {
        while (true) {
            try {
                Thread.sleep(1000);
            } catch (InterruptedException ignored) {
                LOG.info("It does not stop");
            }
        }
    }

    @Override
    public void stop() {
        Mishap.befall(props, "stop");
        Meter.unregister(props);
    }
}
