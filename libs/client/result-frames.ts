/** Maximum size of the result of a tool, UTF-16 units: the gateway counts bytes. */
const MAX_RESULT = 64 * 1024 * 1024;
/** Length of one part of a result. Each takes less than 1 MiB as JSON with any text. */
const PART = 128 * 1024;
/** Length up to which a result is one frame. */
const MAX_WHOLE = 256 * 1024;

interface Attempt {
  readonly callId: string;
  readonly attemptId: string;
}

/** Returns the frames of a result. The gateway joins the parts of a long one. */
export function* resultFrames(content: string, attempt: Attempt): Generator<object> {
  if (content.length > MAX_RESULT) {
    const message = `the result has ${content.length} characters, at most ${MAX_RESULT} bytes are taken`;
    yield { type: 'error', message, ...attempt };
    return;
  }
  let at = 0;
  if (content.length > MAX_WHOLE)
    for (; content.length - at > PART; at += PART)
      yield { type: 'result.part', content: content.slice(at, at + PART), ...attempt };
  yield { type: 'result', content: content.slice(at), ...attempt };
}
