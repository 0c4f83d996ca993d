import { JsonObject, Kind } from '../../shared/assembly/json-value';
import {
  Message,
  outputText,
  readInput,
  respondMessages,
  respondRequest,
} from '../../shared/assembly/channel';

export function describe(): i32 {
  outputText(
    '{"description":"A channel without a platform, for tests and as an example.",' +
      '"schemes":["secret","standard"],"reply_within_ms":4000,"max_text":4000,"buttons":true,"answer":{"id":"id"}}',
  );
  return 0;
}

/** Reads `{"id":"…","from":"…","text":"…"}`, with optional `name peer guild team thread bot`. */
export function parse_incoming(): i32 {
  const input = readInput();
  if (input.kind != Kind.Object) return 1;
  const from = input.textOf('from');
  const peer = input.has('peer') ? input.textOf('peer') : from;
  const message = new Message(input.textOf('id'), peer, input.textOf('text'));
  message.from(from, input.textOf('name'), input.isTrue('bot'));
  message.place('guild', input.textOf('guild')).place('team', input.textOf('team'));
  message.place('thread', input.textOf('thread'));
  if (input.has('button')) message.press(input.textOf('button'));
  return respondMessages([message.toString()]);
}

/** Writes `{"to":"…","text":"…"}`: as the response, or as a request to the address of the file. */
export function format_outgoing(): i32 {
  const input = readInput();
  const body = new JsonObject().text('to', input.textOf('peer')).text('thread', input.textOf('thread'));
  body.text('reply_to', input.textOf('delivery_id')).raw('part', input.textOf('part'));
  body.text('text', input.textOf('text'));
  const buttons = input.get('buttons');
  const keys: string[] = [];
  for (let i = 0; i < buttons.items.length; i++) {
    const key = new JsonObject().text('label', buttons.at(i).textOf('label'));
    keys.push(key.text('value', buttons.at(i).textOf('value')).toString());
  }
  if (keys.length > 0) body.raw('buttons', '[' + keys.join(',') + ']');
  if (input.textOf('mode') == 'request')
    return respondRequest(
      '/messages',
      new JsonObject().text('authorization', 'Bearer {token}'),
      body.toString(),
    );
  outputText(
    new JsonObject().text('content_type', 'application/json').text('body', body.toString()).toString(),
  );
  return 0;
}
