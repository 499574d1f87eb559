package acme;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.ConnectException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What goes wrong in a method, each time that it is called, until there is a file. */
class Mishap {
    private static final Logger LOG = LoggerFactory.getLogger(Mishap.class);
    private static final int STATUS = 7;
    private static final int MANY = 1 << 20;

    private Mishap() {
    }

    static void befall(Map<String, String> props, String method) {
        Cue.await(props, method);
        String cue = props.get("mishap.until");
        if (!method.equals(props.get("mishap.in")) || cue != null && Files.exists(Path.of(cue))) {
            return;
        }
        switch (props.get("mishap")) {
            case "throws" -> throw new ConnectException("no luck in " + method);
            case "exits" -> System.exit(STATUS);
            case "takes all memory" -> takeAllMemory();
            case "lacks a class" -> throw new NoClassDefFoundError("acme/Gone");
            case "logs" -> log(Long.parseLong(props.get("lines")));
            default -> throw new IllegalArgumentException(props.get("mishap"));
        }
    }

    private static void takeAllMemory() {
        List<byte[]> taken = new ArrayList<>();
        while (true) {
            taken.add(new byte[MANY]);
        }
    }

    private static void log(long lines) {
        for (long line = 0; line < lines; line++) {
            LOG.info("line {} of many, of some eighty characters, as those of busy plugins are", line);
        }
    }
}
