function hexOf(code: i32): i32 {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Decodes a value of `application/x-www-form-urlencoded`. */
function decode(text: string): string {
  const bytes: u8[] = [];
  const raw = Uint8Array.wrap(String.UTF8.encode(text));
  for (let i = 0; i < raw.length; i++) {
    const high = raw[i] == 0x25 && i + 2 < raw.length ? hexOf(raw[i + 1]) : -1;
    const low = high >= 0 ? hexOf(raw[i + 2]) : -1;
    if (low >= 0) {
      bytes.push(<u8>(high * 16 + low));
      i += 2;
    } else bytes.push(raw[i] == 0x2b ? 0x20 : raw[i]);
  }
  const decoded = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) decoded[i] = bytes[i];
  return String.UTF8.decode(decoded.buffer);
}

/** Returns the first field of a form with this name; empty for none. */
export function fieldOf(form: string, name: string): string {
  const pairs = form.split('&');
  for (let i = 0; i < pairs.length; i++) {
    const mark = pairs[i].indexOf('=');
    if (mark > 0 && decode(pairs[i].substring(0, mark)) == name) return decode(pairs[i].substring(mark + 1));
  }
  return '';
}
