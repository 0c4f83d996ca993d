import { quote } from './json';
import { JsonText, MAX_DEPTH } from './json-text';

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
export class JsonParser extends JsonText {
  constructor(text: string) {
    super(text);
  }

  parse(): JsonValue {
    const value = this.readValue(0);
    if (this.error == '' && this.peek() != -1) this.fail('text after the value');
    return this.error == '' ? value : MISSING;
  }

  private fail(problem: string): JsonValue {
    this.note(problem);
    return MISSING;
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
