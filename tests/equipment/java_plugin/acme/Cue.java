package acme;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Keeps a method from returning, in a loop that nothing interrupts. */
class Cue {
    private static final String HOLDS = "acme.holds";

    private Cue() {
    }

    /** Waits until there is a file. */
    static void await(Map<String, String> props, String method) {
        Path cue = Path.of(props.getOrDefault("hang.until", ""));
        while (method.equals(props.get("hang.in")) && !Files.exists(cue)) {
            pause();
        }
    }

    /** Waits while the folder of a system property has a file of this name: for methods that are given nothing. */
    static void awaitEndOf(String method) {
        String folder = System.getProperty(HOLDS);
        while (folder != null && Files.exists(Path.of(folder, method))) {
            pause();
        }
    }

    private static void pause() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException ignored) {
            // As those do that cannot be stopped.
        }
    }
}
