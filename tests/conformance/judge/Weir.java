/* Weir.java: runs the command. */
package judge;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

public final class Weir {
	public record Result(int code, String out, String err) {}

	public static final String BIN = System.getenv().getOrDefault("WEIR_BIN", "build/weir");

	private Weir() {}

	/** A program of the tests, built beside weir. */
	public static File program(String name) {
		return new File(new File(BIN).getAbsoluteFile().getParentFile(), "tests/" + name);
	}

	/** Runs weir in folder, stdout and stderr by way of files there. Five minutes at most: the machine may be busy. */
	public static Result run(Path folder, String... arguments) throws Exception {
		return run(new File(BIN), folder, List.of(arguments));
	}

	public static Result run(File program, Path folder, List<String> arguments) throws Exception {
		List<String> command = new ArrayList<>(List.of(program.getAbsolutePath()));
		command.addAll(arguments);
		Path out = folder.resolve("stdout"), err = folder.resolve("stderr");
		Process p = new ProcessBuilder(command).directory(folder.toFile()).redirectOutput(out.toFile())
			.redirectError(err.toFile()).redirectInput(new File("/dev/null")).start();
		if (!p.waitFor(300, TimeUnit.SECONDS)) {
			p.destroyForcibly();
			return new Result(-1, "", "weir did not end within 300 s");
		}
		return new Result(p.exitValue(), Files.readString(out, StandardCharsets.UTF_8),
			Files.readString(err, StandardCharsets.UTF_8));
	}
}
