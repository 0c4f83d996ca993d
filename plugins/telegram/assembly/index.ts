import { JsonObject, JsonValue, Kind } from '../../shared/assembly/json-value';
import {
  Message,
  outputText,
  readInput,
  respondMessages,
  respondRequest,
} from '../../shared/assembly/channel';

export function describe(): i32 {
  outputText(
    '{"description":"Telegram bots: text, captions and files of private chats, groups and topics.",' +
      '"schemes":["telegram"],"base_url":"https://api.telegram.org","max_text":4096,"buttons":true,' +
      '"answer":{"ok":"ok","error":"description","retry_after":"parameters.retry_after","id":"result.message_id"},' +
      '"poll":{"url":"/bot{token}/getUpdates?timeout=5&offset={offset}","items":"result","id":"update_id"}}',
  );
  return 0;
}

/** Returns the text of a command without the name of the bot, and the payload of a deep link. */
function textOf(text: string): string {
  if (text.startsWith('/start ')) return text.substring(7);
  if (!text.startsWith('/')) return text;
  const space = text.indexOf(' ');
  const end = space < 0 ? text.length : space;
  const mark = text.indexOf('@');
  return mark > 0 && mark < end ? text.substring(0, mark) + text.substring(end) : text;
}

function attachFile(message: Message, kind: string, file: JsonValue): void {
  if (file.kind != Kind.Object) return;
  message.attach(kind, file.textOf('file_id'), file.textOf('file_name'), file.textOf('mime_type'));
}

/** Reads the press of a button below a message of the bot. */
function readPress(update: JsonValue): i32 {
  const query = update.get('callback_query');
  const post = query.get('message');
  const chat = post.get('chat');
  if (chat.kind != Kind.Object || !query.has('data')) return respondMessages([]);
  const from = query.get('from');
  const message = new Message(update.textOf('update_id'), chat.textOf('id'), '');
  message.from(from.textOf('id'), from.textOf('first_name'), from.isTrue('is_bot'));
  if (post.isTrue('is_topic_message')) message.place('thread', post.textOf('message_thread_id'));
  message.press(query.textOf('data')).keep('callback', query.textOf('id'));
  return respondMessages([message.toString()]);
}

/** Reads an update. Edits, posts of channels and stickers have no message. */
export function parse_incoming(): i32 {
  const update = readInput();
  if (update.kind != Kind.Object || !update.has('update_id')) return 1;
  if (update.has('callback_query')) return readPress(update);
  const post = update.get('message');
  if (post.kind != Kind.Object || post.has('sticker')) return respondMessages([]);
  const from = post.get('from');
  const chat = post.get('chat');
  if (from.kind != Kind.Object || chat.kind != Kind.Object) return respondMessages([]);
  const text = post.has('text') ? post.textOf('text') : post.textOf('caption');
  const message = new Message(update.textOf('update_id'), chat.textOf('id'), textOf(text));
  message.from(from.textOf('id'), from.textOf('first_name'), from.isTrue('is_bot'));
  if (post.isTrue('is_topic_message')) message.place('thread', post.textOf('message_thread_id'));
  const photos = post.get('photo');
  if (photos.kind == Kind.List && photos.items.length > 0)
    attachFile(message, 'photo', photos.items[photos.items.length - 1]);
  attachFile(message, 'document', post.get('document'));
  attachFile(message, 'voice', post.get('voice'));
  attachFile(message, 'audio', post.get('audio'));
  attachFile(message, 'video', post.get('video'));
  return respondMessages([message.toString()]);
}

/** Shows the result of a press to the sender alone. */
function answerPress(callback: string, text: string): i32 {
  const body = new JsonObject().text('callback_query_id', callback).text('text', text.substring(0, 200));
  return respondRequest('/bot{token}/answerCallbackQuery', new JsonObject(), body.toString());
}

export function format_outgoing(): i32 {
  const input = readInput();
  const callback = input.get('reply_to').textOf('callback');
  if (callback != '') return answerPress(callback, input.textOf('text'));
  const body = new JsonObject().text('chat_id', input.textOf('peer')).text('text', input.textOf('text'));
  const thread = input.textOf('thread');
  if (thread != '') body.raw('message_thread_id', thread);
  const buttons = input.get('buttons');
  const keys: string[] = [];
  for (let i = 0; i < buttons.items.length; i++) {
    const button = buttons.at(i);
    const key = new JsonObject().text('text', button.textOf('label'));
    keys.push(key.text('callback_data', button.textOf('value')).toString());
  }
  if (keys.length > 0) body.raw('reply_markup', '{"inline_keyboard":[[' + keys.join(',') + ']]}');
  return respondRequest('/bot{token}/sendMessage', new JsonObject(), body.toString());
}
