import { Host } from '@extism/as-pdk';
import { answer } from '../../shared/assembly/result';

export function describe(): i32 {
  Host.outputString(
    '{"description":"Answers its input, unchanged, as JSON text.",' +
      '"input_schema":{"type":"object","properties":{"text":{"type":"string","description":"What to say back."}},"additionalProperties":true},' +
      '"idempotent":true}',
  );
  return 0;
}

export function handle_tool_call(): i32 {
  return answer(Host.input(), false);
}
