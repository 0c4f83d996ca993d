import { Host } from '@extism/as-pdk';
import { StringField } from '../../shared/assembly/json';
import { respondText } from '../../shared/assembly/result';
import { Calculation } from './calculation';
import { formatNumber } from './format-number';

export function describe(): i32 {
  Host.outputString(
    '{"description":"Evaluates an arithmetic expression: numbers with decimals, + - * / % (remainder) and ^ (power), parentheses, unary minus. Returns the number, to 15 significant digits.",' +
      '"input_schema":{"type":"object","properties":{"expression":{"type":"string","maxLength":1000,"description":"For example: (2.5 + 3) * -4"}},"required":["expression"],"additionalProperties":false},' +
      '"idempotent":true}',
  );
  return 0;
}

/** Size of the longest expression with each character escaped. */
const MAX_INPUT_BYTES: i32 = 8192;

export function handle_tool_call(): i32 {
  const bytes = Host.input();
  if (bytes.length > MAX_INPUT_BYTES)
    return respondText('the input has ' + bytes.length.toString() + ' bytes, at most 8192 are read', true);
  const input = new StringField(String.UTF8.decode(bytes.buffer), 'expression');
  if (input.error != '') return respondText('the input is not a JSON object: ' + input.error, true);
  if (!input.found) return respondText('the input must be {"expression":"…"} with a string', true);
  const calculation = new Calculation(input.value);
  return calculation.error == ''
    ? respondText(formatNumber(calculation.value), false)
    : respondText(calculation.error, true);
}
