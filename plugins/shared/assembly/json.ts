import { JsonText, MAX_DEPTH } from './json-text';

/** Returns a UTF-8 text as a JSON string literal in UTF-8, in linear time. */
export function quote(text: Uint8Array): Uint8Array {
  let size = 2;
  for (let i = 0; i < text.length; i++) size += escapedSize(text[i]);
  const out = new Uint8Array(size);
  let at = 0;
  out[at++] = 0x22;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    const width = escapedSize(c);
    if (width > 1) out[at++] = 0x5c;
    if (width == 6) {
      out[at++] = 0x75; // \u00..
      out[at++] = 0x30;
      out[at++] = 0x30;
      out[at++] = 0x30 + (c >> 4);
      out[at++] = <u8>'0123456789abcdef'.charCodeAt(c & 15);
    } else out[at++] = c;
  }
  out[at] = 0x22;
  return out;
}

function escapedSize(c: u8): i32 {
  if (c < 0x20) return 6;
  return c == 0x22 || c == 0x5c ? 2 : 1;
}

/** Finds the string value of one key. Parses the JSON object strictly, in one pass. */
export class StringField extends JsonText {
  /** The value, when `found`. */
  value: string = '';
  found: bool = false;

  constructor(
    text: string,
    private key: string,
  ) {
    super(text);
    this.readObject();
  }

  private fail(problem: string): bool {
    this.note(problem);
    return false;
  }

  private readObject(): void {
    if (!this.take(0x7b)) {
      this.fail('expected an object');
      return;
    }
    if (!this.take(0x7d)) {
      do {
        if (!this.readMember()) return;
      } while (this.take(0x2c));
      if (!this.take(0x7d)) this.fail('expected , or }');
    }
    if (this.error == '' && this.peek() != -1) this.fail('text after the object');
  }

  private readMember(): bool {
    if (this.peek() != 0x22) return this.fail('expected a key');
    const name = this.readString();
    if (!this.take(0x3a)) return this.fail('expected :');
    if (name == this.key && this.peek() == 0x22) {
      this.value = this.readString();
      this.found = this.error == '';
      return this.found;
    }
    if (name == this.key) this.found = false;
    return this.skipValue();
  }

  /** Skips a value by counting brackets. */
  private skipValue(): bool {
    let depth = 0;
    do {
      const c = this.peek();
      if (c == -1) return this.fail('the value is missing');
      if (c == 0x22) this.readString();
      else {
        if (c == 0x7b || c == 0x5b) depth++;
        else if (c == 0x7d || c == 0x5d) depth--;
        else if (depth == 0 && c == 0x2c) return this.fail('the value is missing');
        if (depth > MAX_DEPTH) return this.fail('nested too deeply');
        if (depth < 0) return this.fail('the value is missing');
        this.at++;
        if (depth == 0 && c != 0x7d && c != 0x5d) this.skipWord();
      }
      if (this.error != '') return false;
    } while (depth > 0);
    return true;
  }

  private skipWord(): void {
    while (this.at < this.text.length) {
      const c = this.text.charCodeAt(this.at);
      if (c == 0x2c || c == 0x7d || c == 0x5d || c <= 0x20) return;
      this.at++;
    }
  }
}
