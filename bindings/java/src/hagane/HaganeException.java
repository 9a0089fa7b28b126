package hagane;

/** A call that failed: its code, as hagane.h has them, and hagane's message. */
public final class HaganeException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final int code;

  HaganeException(int code, String message) {
    super(message);
    this.code = code;
  }

  /** Returns the code, one of those of hagane.h. */
  public int code() {
    return code;
  }
}
