import { Host } from '@extism/as-pdk';
import { StringField } from '../../../shared/assembly/json';
import { respondText } from '../../../shared/assembly/result';

// Only for tests: a result as long as the limits allow.
export function describe(): i32 {
  Host.outputString(
    '{"description":"Returns one line of a length.",' +
      '"input_schema":{"type":"object","properties":{"length":{"type":"string","pattern":"^[0-9]{1,7}$"}},"required":["length"],"additionalProperties":false},' +
      '"idempotent":true}',
  );
  return 0;
}

export function handle_tool_call(): i32 {
  const input = new StringField(String.UTF8.decode(Host.input().buffer), 'length');
  if (!input.found) return respondText('the input must be {"length":"…"} with a number as a string', true);
  return respondText('x'.repeat(I32.parseInt(input.value)), false);
}
