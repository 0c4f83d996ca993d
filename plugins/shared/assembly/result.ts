import { Host } from '@extism/as-pdk';
import { quote } from './json';

/**
 * Outputs the result of a tool call: `content` (UTF-8) for the model, and whether it is an error.
 */
export function respond(content: Uint8Array, isError: bool): i32 {
  const head = utf8('{"content":');
  const body = quote(content);
  const tail = utf8(isError ? ',"is_error":true}' : ',"is_error":false}');
  const out = new Uint8Array(head.length + body.length + tail.length);
  out.set(head);
  out.set(body, head.length);
  out.set(tail, head.length + body.length);
  Host.output(out);
  return 0;
}

export function respondText(content: string, isError: bool): i32 {
  return respond(utf8(content), isError);
}

function utf8(text: string): Uint8Array {
  return Uint8Array.wrap(String.UTF8.encode(text));
}
