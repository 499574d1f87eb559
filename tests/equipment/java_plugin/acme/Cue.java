package acme;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Keeps a method from returning, in a loop that nothing interrupts, until there is a file. */
class Cue {
    private Cue() {
    }

    static void await(Map<String, String> props, String method) {
        Path cue = Path.of(props.getOrDefault("hang.until", ""));
        while (method.equals(props.get("hang.in")) && !Files.exists(cue)) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException ignored) {
                // As those do that cannot be stopped.
            }
        }
    }
}
