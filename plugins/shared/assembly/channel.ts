import { Host } from '@extism/as-pdk';
import { JsonObject, JsonParser, JsonValue, Kind, literal } from './json-value';

/** Outputs a text. The one of the kit counts characters where bytes are meant. */
export function outputText(text: string): void {
  Host.output(Uint8Array.wrap(String.UTF8.encode(text)));
}

/** Parses the input of the call as JSON. Fails the call if it is none. */
export function readInput(): JsonValue {
  const parser = new JsonParser(String.UTF8.decode(Host.input().buffer));
  const value = parser.parse();
  return parser.error == '' ? value : new JsonValue(Kind.Missing);
}

/** A message in the form that the host reads. */
export class Message {
  private fields: JsonObject = new JsonObject();
  private replyTo: JsonObject = new JsonObject();
  private files: string[] = [];

  constructor(deliveryId: string, peer: string, text: string) {
    this.fields.text('delivery_id', deliveryId).text('peer', peer).raw('text', literal(text));
  }

  from(id: string, name: string, isBot: bool): Message {
    const sender = new JsonObject().text('id', id).text('name', name);
    this.fields.raw('sender', sender.raw('is_bot', isBot ? 'true' : 'false').toString());
    return this;
  }

  place(key: string, value: string): Message {
    this.fields.text(key, value);
    return this;
  }

  /** Keeps a value for the reply. */
  keep(key: string, value: string): Message {
    this.replyTo.text(key, value);
    return this;
  }

  /** Hands a secret of the reply to the host, which keeps it encrypted for `{reply_secret}`. */
  secret(value: string): Message {
    this.fields.text('reply_secret', value);
    return this;
  }

  /** Marks the message as the press of a button with this value. */
  press(value: string): Message {
    this.fields.text('kind', 'button').text('button', value);
    return this;
  }

  attach(kind: string, id: string, name: string, mediaType: string): Message {
    const file = new JsonObject().text('kind', kind).text('id', id).text('name', name);
    this.files.push(file.text('media_type', mediaType).toString());
    return this;
  }

  toString(): string {
    this.fields.raw('reply_to', this.replyTo.toString());
    if (this.files.length > 0) this.fields.raw('attachments', '[' + this.files.join(',') + ']');
    return this.fields.toString();
  }
}

/** Outputs the messages of a delivery. */
export function respondMessages(messages: string[]): i32 {
  outputText('{"messages":[' + messages.join(',') + ']}');
  return 0;
}

/** Outputs messages, and the response that the platform expects now. */
export function respondNow(body: string, messages: string[]): i32 {
  const respond = new JsonObject().text('content_type', 'application/json').text('body', body).toString();
  outputText('{"respond":' + respond + ',"messages":[' + messages.join(',') + ']}');
  return 0;
}

/** Outputs a request of the host to the platform. */
export function respondRequest(url: string, headers: JsonObject, body: string): i32 {
  return sendRequest('POST', url, headers, body);
}

export function sendRequest(method: string, url: string, headers: JsonObject, body: string): i32 {
  headers.text('content-type', 'application/json');
  const request = new JsonObject().text('method', method).text('url', url);
  outputText(request.raw('headers', headers.toString()).text('body', body).toString());
  return 0;
}
