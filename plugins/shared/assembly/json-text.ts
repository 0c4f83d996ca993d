/** Maximum depth of lists and objects. */
export const MAX_DEPTH: i32 = 64;

/** Position in a JSON text, with its first error. Parsers read its strings and marks. */
export class JsonText {
  /** First error, or empty. */
  error: string = '';
  protected at: i32 = 0;

  constructor(protected text: string) {}

  protected note(problem: string): void {
    if (this.error == '') this.error = problem + ' at character ' + this.at.toString();
  }

  /** Returns the next character that is no blank, without taking it; -1 at the end. */
  protected peek(): i32 {
    while (this.at < this.text.length) {
      const c = this.text.charCodeAt(this.at);
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return c;
      this.at++;
    }
    return -1;
  }

  protected take(expected: i32): bool {
    if (this.peek() != expected) return false;
    this.at++;
    return true;
  }

  protected readString(): string {
    // A string is never longer than its literal, so one buffer is enough.
    const units = new StaticArray<u16>(this.text.length - this.at);
    let length = 0;
    for (this.at++; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c == 0x22) {
        this.at++;
        return String.UTF16.decodeUnsafe(changetype<usize>(units), length << 1);
      }
      if (c < 0x20) this.note('a control character in a string');
      units[length++] = <u16>(c == 0x5c ? this.readEscape() : c);
      if (this.error != '') return '';
    }
    this.note('a string without an end');
    return '';
  }

  private readEscape(): i32 {
    const c = this.text.charAt(++this.at);
    const index = '"\\/bfnrt'.indexOf(c);
    if (c != '' && index >= 0) return '"\\/\b\f\n\r\t'.charCodeAt(index);
    if (c != 'u') {
      this.note('an unknown escape');
      return 0;
    }
    let code = 0;
    for (let i = 0; i < 4; i++) {
      const hex = this.text.charAt(++this.at);
      const digit = '0123456789abcdef'.indexOf(hex.toLowerCase());
      if (digit < 0 || hex == '') this.note('a bad \\u escape');
      code = code * 16 + digit;
    }
    return code;
  }
}
