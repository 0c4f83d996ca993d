import { Host } from '@extism/as-pdk';
import { respond } from '../../shared/assembly/result';

export function describe(): i32 {
  Host.outputString(
    '{"description":"Returns its input, unchanged, as JSON text.",' +
      '"input_schema":{"type":"object","properties":{"text":{"type":"string","description":"Text to return."}},"additionalProperties":true},' +
      '"idempotent":true}',
  );
  return 0;
}

export function handle_tool_call(): i32 {
  return respond(Host.input(), false);
}
