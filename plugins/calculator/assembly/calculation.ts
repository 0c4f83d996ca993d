const MAX_LENGTH: i32 = 1000;
/** Maximum nesting of parentheses, signs and powers, each of which is a recursive call. */
const MAX_DEPTH: i32 = 100;

/**
 * Parses and evaluates an expression by recursive descent, with this grammar:
 *
 * ```
 * sum = product (("+" | "-") product)*
 * product = signed (("*" | "/" | "%") signed)*
 * signed = ("+" | "-") signed | power
 * power = atom ("^" signed)?
 * atom = number | "(" sum ")"
 * ```
 *
 * As in mathematics, -2^2 is -4, 2^-1 is 0.5 and 2^3^2 is 512.
 */
export class Calculation {
  value: f64 = 0;
  /** First error, or empty. */
  error: string = '';
  private at: i32 = 0;
  private depth: i32 = 0;

  constructor(private text: string) {
    if (text.length > MAX_LENGTH)
      this.fail(
        'the expression has ' + text.length.toString() + ' characters, at most ' + MAX_LENGTH.toString(),
      );
    else if (this.peek() == -1) this.fail('the expression is empty');
    else this.value = this.sum();
    if (this.error == '' && this.peek() != -1) this.unexpected();
    if (this.error == '' && !isFinite(this.value))
      this.fail('the result is not a number, or too large for one');
  }

  private fail(reason: string): f64 {
    if (this.error == '') this.error = reason;
    return 0;
  }

  private unexpected(): f64 {
    const c = this.peek();
    return c == -1
      ? this.fail('the expression ends too early')
      : this.fail('unexpected ' + String.fromCharCode(c) + ' at character ' + (this.at + 1).toString());
  }

  private peek(): i32 {
    while (this.at < this.text.length) {
      const c = this.text.charCodeAt(this.at);
      if (c != 0x20 && c != 0x09 && c != 0x0a && c != 0x0d && c != 0xa0) return c;
      this.at++;
    }
    return -1;
  }

  private take(c: i32): bool {
    if (this.error != '' || this.peek() != c) return false;
    this.at++;
    return true;
  }

  private enter(): bool {
    if (++this.depth <= MAX_DEPTH) return true;
    this.fail('the expression nests too deeply, at most ' + MAX_DEPTH.toString() + ' levels');
    return false;
  }

  private sum(): f64 {
    let value = this.product();
    let more = true;
    while (more) {
      if (this.take(0x2b)) value += this.product();
      else if (this.take(0x2d) || this.take(0x2212)) value -= this.product();
      else more = false;
    }
    return value;
  }

  private product(): f64 {
    let value = this.signed();
    let more = true;
    while (more) {
      if (this.take(0x2a) || this.take(0xd7)) value *= this.signed();
      else if (this.take(0x2f) || this.take(0xf7)) value = this.divide(value, this.signed(), false);
      else if (this.take(0x25)) value = this.divide(value, this.signed(), true);
      else more = false;
    }
    return value;
  }

  private divide(dividend: f64, divisor: f64, remainder: bool): f64 {
    if (divisor == 0) return this.fail('division by zero');
    return remainder ? dividend % divisor : dividend / divisor;
  }

  private signed(): f64 {
    if (this.error != '' || !this.enter()) return 0;
    let value: f64;
    if (this.take(0x2d) || this.take(0x2212)) value = -this.signed();
    else if (this.take(0x2b)) value = this.signed();
    else value = this.power();
    this.depth--;
    return value;
  }

  private power(): f64 {
    const base = this.atom();
    if (!this.take(0x5e)) return base;
    const exponent = this.signed();
    if (base == 0 && exponent < 0) return this.fail('division by zero');
    return Math.pow(base, exponent);
  }

  private atom(): f64 {
    if (this.take(0x28)) {
      const value = this.sum();
      if (this.error == '' && !this.take(0x29)) {
        if (this.peek() == -1) this.fail('a closing parenthesis is missing');
        else this.unexpected();
      }
      return value;
    }
    return this.number();
  }

  private digits(): bool {
    const start = this.at;
    while (this.at < this.text.length && isDigit(this.text.charCodeAt(this.at))) this.at++;
    return this.at > start;
  }

  private number(): f64 {
    if (this.error != '') return 0;
    this.peek();
    const start = this.at;
    const whole = this.digits();
    let fraction = false;
    if (this.at < this.text.length && this.text.charCodeAt(this.at) == 0x2e) {
      this.at++;
      fraction = this.digits();
    }
    if (!whole && !fraction) {
      this.at = start;
      return this.unexpected();
    }
    this.exponent();
    return F64.parseFloat(this.text.substring(start, this.at));
  }

  /**
   * Skips an exponent such as `e3` or `E-3`. Without digits, the letter is not part of the number.
   */
  private exponent(): void {
    const start = this.at;
    if (start >= this.text.length || (this.text.charCodeAt(start) | 0x20) != 0x65) return;
    this.at++;
    if (this.at < this.text.length) {
      const sign = this.text.charCodeAt(this.at);
      if (sign == 0x2b || sign == 0x2d) this.at++;
    }
    if (!this.digits()) this.at = start;
  }
}

function isDigit(c: i32): bool {
  return c >= 0x30 && c <= 0x39;
}
