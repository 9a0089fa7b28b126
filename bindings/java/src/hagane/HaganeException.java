package hagane;

import java.nio.charset.StandardCharsets;

/** A call that failed: its code, as hagane.h has them, and hagane's message. */
public final class HaganeException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final int code;

  HaganeException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** From C, whose texts are UTF-8. */
  HaganeException(int code, byte[] message) {
    this(code, new String(message, StandardCharsets.UTF_8));
  }

  /** Returns the code, one of those of hagane.h. */
  public int code() {
    return code;
  }
}
