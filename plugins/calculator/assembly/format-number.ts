const SIGNIFICANT: i32 = 15;
const MAX_EXACT: f64 = 9007199254740991;

/**
 * Formats a number: an exact integer in full, others to 15 significant digits. That hides that
 * 0.1 + 0.2 is 0.30000000000000004 in binary. A number too large to be exact gets an exponent.
 */
export function formatNumber(value: f64): string {
  if (value == 0) return '0';
  const size = Math.abs(value);
  if (Math.floor(value) == value && size <= MAX_EXACT) return (<i64>value).toString();
  const text = value.toString();
  const e = text.indexOf('e');
  if (e >= 0) return trimZeros(roundTo(text.substring(0, e), SIGNIFICANT)) + text.substring(e);
  return size > MAX_EXACT ? scientific(text) : trimZeros(roundTo(text, SIGNIFICANT));
}

/** Formats `-123456789012345678.0` as `-1.23456789012346e+17`. */
function scientific(text: string): string {
  const sign = text.charCodeAt(0) == 0x2d ? '-' : '';
  const point = text.indexOf('.');
  const digits = text.substring(sign.length, point < 0 ? text.length : point);
  const mantissa = roundTo(digits.charAt(0) + '.' + digits.substring(1), SIGNIFICANT);
  return sign + trimZeros(mantissa) + 'e+' + (digits.length - 1).toString();
}

/** Rounds decimal digits half up, as text, which avoids a second rounding in binary. */
function roundTo(text: string, significant: i32): string {
  const digits: i32[] = [];
  let point = -1;
  let first = -1;
  const start = text.charCodeAt(0) == 0x2d ? 1 : 0;
  for (let i = start; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c == 0x2e) {
      point = digits.length;
      continue;
    }
    if (first < 0 && c != 0x30) first = digits.length;
    digits.push(c - 0x30);
  }
  if (point < 0) point = digits.length;
  const keep = first + significant;
  if (keep >= digits.length) return text;
  let carry = digits[keep] >= 5 ? 1 : 0;
  for (let i = keep; i < digits.length; i++) digits[i] = 0;
  for (let i = keep - 1; i >= 0 && carry > 0; i--) {
    digits[i] += carry;
    carry = digits[i] == 10 ? 1 : 0;
    if (carry > 0) digits[i] = 0;
  }
  let out = start == 1 ? '-' : '';
  if (carry > 0) out += '1';
  for (let i = 0; i < digits.length; i++) {
    if (i == point) out += '.';
    out += digits[i].toString();
  }
  return out;
}

function trimZeros(text: string): string {
  if (text.indexOf('.') < 0) return text;
  let end = text.length;
  while (text.charCodeAt(end - 1) == 0x30) end--;
  if (text.charCodeAt(end - 1) == 0x2e) end--;
  return text.substring(0, end);
}
