import { Host } from '@extism/as-pdk';
import { StringField } from '../../../../plugins/shared/assembly/json';
import { respondText } from '../../../../plugins/shared/assembly/result';

// Counting takes longer for larger numbers. Half a second is enough for most, and a retry helps
// when the machine was busy.
export function describe(): i32 {
  Host.outputString(
    '{"description":"Counts the prime numbers below a number.",' +
      '"input_schema":{"type":"object","properties":{"below":{"type":"string","pattern":"^[0-9]{1,18}$","description":"For example: 1000"}},"required":["below"],"additionalProperties":false},' +
      '"idempotent":true,' +
      '"timeout_ms":500,' +
      '"retry":{"max_attempts":3,"backoff_ms":100,"max_backoff_ms":1000,"on_timeout":true}}',
  );
  return 0;
}

export function handle_tool_call(): i32 {
  const input = new StringField(String.UTF8.decode(Host.input().buffer), 'below');
  if (input.error != '') return respondText('the input is not a JSON object: ' + input.error, true);
  if (!input.found) return respondText('the input must be {"below":"…"} with a number as a string', true);
  return respondText(countPrimes(U64.parseInt(input.value)).toString(), false);
}

function countPrimes(below: u64): u64 {
  let count: u64 = 0;
  for (let n: u64 = 2; n < below; n++) if (isPrime(n)) count++;
  return count;
}

function isPrime(n: u64): bool {
  for (let d: u64 = 2; d * d <= n; d++) if (n % d == 0) return false;
  return true;
}
