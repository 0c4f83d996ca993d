import { Host, Memory } from '@extism/as-pdk';
import { StringField, quote } from '../../shared/assembly/json';
import { respond, respondText } from '../../shared/assembly/result';
import { http_request, http_status_code, length } from './host';

export function describe(): i32 {
  Host.outputString(
    '{"description":"Gets a text page (HTML, JSON, XML, plain text) by HTTPS or HTTP from a host that the operator has allowed, and returns its text. At most 256 KiB.",' +
      '"input_schema":{"type":"object","properties":{"url":{"type":"string","maxLength":2048,"description":"For example: https://api.example.com/v1/items?limit=3"}},"required":["url"],"additionalProperties":false},' +
      '"idempotent":true}',
  );
  return 0;
}

/** Size of the longest URL with each character escaped. */
const MAX_INPUT_BYTES: i32 = 16384;

export function handle_tool_call(): i32 {
  const bytes = Host.input();
  if (bytes.length > MAX_INPUT_BYTES)
    return respondText('the input has ' + bytes.length.toString() + ' bytes, at most 16384 are read', true);
  const input = new StringField(String.UTF8.decode(bytes.buffer), 'url');
  if (input.error != '') return respondText('the input is not a JSON object: ' + input.error, true);
  if (!input.found) return respondText('the input must be {"url":"…"} with a string', true);
  const url = String.UTF8.decode(quote(Uint8Array.wrap(String.UTF8.encode(input.value))).buffer);
  const request = Memory.allocateString('{"method":"GET","url":' + url + '}');
  const block = http_request(request.offset, 0);
  const page = block == 0 ? new Uint8Array(0) : new Memory(block, length(block)).toUint8Array();
  const status = http_status_code();
  // The body is the host's error message for an allowed page that failed.
  if (status == 0) return respond(page, true);
  if (status < 400) return respond(page, false);
  return respondText('HTTP ' + status.toString() + '\n\n' + String.UTF8.decode(page.buffer), true);
}
