import { quote } from './json';

/** Kinds of JSON values. */
export enum Kind {
  Missing,
  Null,
  Boolean,
  Number,
  Text,
  List,
  Object,
}

const MAX_DEPTH: i32 = 64;

/** A JSON value. A member that is not there is a value of the kind `Missing`. */
export class JsonValue {
  items: JsonValue[] = [];
  keys: string[] = [];

  constructor(
    public kind: Kind,
    /** A text; of a number or a boolean, its literal. */
    public text: string = '',
  ) {}

  /** Returns a member of an object. */
  get(key: string): JsonValue {
    for (let i = 0; i < this.keys.length; i++) if (this.keys[i] == key) return this.items[i];
    return MISSING;
  }

  /** Returns an element of a list. */
  at(index: i32): JsonValue {
    return this.kind == Kind.List && index < this.items.length ? this.items[index] : MISSING;
  }

  has(key: string): bool {
    const kind = this.get(key).kind;
    return kind != Kind.Missing && kind != Kind.Null;
  }

  /** Returns the text of a text or a number; empty for any other value. */
  textOf(key: string): string {
    const value = this.get(key);
    return value.kind == Kind.Text || value.kind == Kind.Number ? value.text : '';
  }

  isTrue(key: string): bool {
    const value = this.get(key);
    return value.kind == Kind.Boolean && value.text == 'true';
  }
}

const MISSING = new JsonValue(Kind.Missing);

/** Parses a JSON text. `error` is empty for a whole one. */
export class JsonParser {
  error: string = '';
  private at: i32 = 0;

  constructor(private text: string) {}

  parse(): JsonValue {
    const value = this.readValue(0);
    if (this.error == '' && this.peek() != -1) this.fail('text after the value');
    return this.error == '' ? value : MISSING;
  }

  private fail(problem: string): JsonValue {
    if (this.error == '') this.error = problem + ' at character ' + this.at.toString();
    return MISSING;
  }

  private peek(): i32 {
    while (this.at < this.text.length) {
      const c = this.text.charCodeAt(this.at);
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return c;
      this.at++;
    }
    return -1;
  }

  private take(expected: i32): bool {
    if (this.peek() != expected) return false;
    this.at++;
    return true;
  }

  private readValue(depth: i32): JsonValue {
    if (depth > MAX_DEPTH) return this.fail('nested too deeply');
    const c = this.peek();
    if (c == 0x7b) return this.readObject(depth);
    if (c == 0x5b) return this.readList(depth);
    if (c == 0x22) return new JsonValue(Kind.Text, this.readString());
    return this.readWord();
  }

  private readObject(depth: i32): JsonValue {
    const object = new JsonValue(Kind.Object);
    this.at++;
    if (this.take(0x7d)) return object;
    do {
      if (this.peek() != 0x22) return this.fail('expected a key');
      object.keys.push(this.readString());
      if (!this.take(0x3a)) return this.fail('expected :');
      object.items.push(this.readValue(depth + 1));
      if (this.error != '') return MISSING;
    } while (this.take(0x2c));
    return this.take(0x7d) ? object : this.fail('expected , or }');
  }

  private readList(depth: i32): JsonValue {
    const list = new JsonValue(Kind.List);
    this.at++;
    if (this.take(0x5d)) return list;
    do {
      list.items.push(this.readValue(depth + 1));
      if (this.error != '') return MISSING;
    } while (this.take(0x2c));
    return this.take(0x5d) ? list : this.fail('expected , or ]');
  }

  private readWord(): JsonValue {
    const begin = this.at;
    while (this.at < this.text.length) {
      const c = this.text.charCodeAt(this.at);
      if (c == 0x2c || c == 0x7d || c == 0x5d || c <= 0x20) break;
      this.at++;
    }
    const word = this.text.substring(begin, this.at);
    if (word == 'null') return new JsonValue(Kind.Null);
    if (word == 'true' || word == 'false') return new JsonValue(Kind.Boolean, word);
    const first = word.length == 0 ? 0 : word.charCodeAt(0);
    if (first == 0x2d || (first >= 0x30 && first <= 0x39)) return new JsonValue(Kind.Number, word);
    return this.fail('the value is missing');
  }

  private readString(): string {
    const units = new Array<u16>();
    for (this.at++; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c == 0x22) {
        this.at++;
        return String.UTF16.decodeUnsafe(units.dataStart, units.length << 1);
      }
      if (c < 0x20) this.fail('a control character in a string');
      units.push(<u16>(c == 0x5c ? this.readEscape() : c));
      if (this.error != '') return '';
    }
    this.fail('a string without an end');
    return '';
  }

  private readEscape(): i32 {
    const c = this.text.charAt(++this.at);
    const index = '"\\/bfnrt'.indexOf(c);
    if (c != '' && index >= 0) return '"\\/\b\f\n\r\t'.charCodeAt(index);
    if (c != 'u') {
      this.fail('an unknown escape');
      return 0;
    }
    let code = 0;
    for (let i = 0; i < 4; i++) {
      const hex = this.text.charAt(++this.at);
      const digit = '0123456789abcdef'.indexOf(hex.toLowerCase());
      if (digit < 0 || hex == '') this.fail('a bad \\u escape');
      code = code * 16 + digit;
    }
    return code;
  }
}

/** Returns a text as a JSON string literal. */
export function literal(text: string): string {
  return String.UTF8.decode(quote(Uint8Array.wrap(String.UTF8.encode(text))).buffer);
}

/** Writes the members of a JSON object. */
export class JsonObject {
  private body: string = '';

  /** Adds a text, unless it is empty. */
  text(key: string, value: string): JsonObject {
    return value == '' ? this : this.raw(key, literal(value));
  }

  /** Adds a value that is JSON already. */
  raw(key: string, value: string): JsonObject {
    this.body += (this.body == '' ? '' : ',') + literal(key) + ':' + value;
    return this;
  }

  toString(): string {
    return '{' + this.body + '}';
  }
}
