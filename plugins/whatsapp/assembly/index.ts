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
    '{"description":"WhatsApp Business Cloud API: texts, captions and files.",' +
      '"schemes":["meta"],"base_url":"https://graph.facebook.com","max_text":4096,"buttons":true,' +
      '"answer":{"error":"error.message","id":"messages.0.id"}}',
  );
  return 0;
}

const FILES: string[] = ['image', 'document', 'audio', 'video'];

/** Returns the text of a message; of a button its title. */
function textOf(post: JsonValue): string {
  const type = post.textOf('type');
  if (type == 'text') return post.get('text').textOf('body');
  if (type == 'button') return post.get('button').textOf('text');
  if (type == 'interactive') return post.get('interactive').get('button_reply').textOf('title');
  return post.get(type).textOf('caption');
}

function nameOf(value: JsonValue, from: string): string {
  const contacts = value.get('contacts');
  for (let i = 0; i < contacts.items.length; i++) {
    const contact = contacts.at(i);
    if (contact.textOf('wa_id') == from) return contact.get('profile').textOf('name');
  }
  return '';
}

function readMessages(value: JsonValue, found: string[]): void {
  const posts = value.get('messages');
  for (let i = 0; i < posts.items.length; i++) {
    const post = posts.at(i);
    const from = post.textOf('from');
    const type = post.textOf('type');
    const message = new Message(post.textOf('id'), from, textOf(post));
    message.from(from, nameOf(value, from), false);
    const pressed = post.get('interactive').get('button_reply').textOf('id');
    if (type == 'interactive' && pressed != '') message.press(pressed);
    message.keep('phone_number_id', value.get('metadata').textOf('phone_number_id'));
    if (FILES.includes(type)) {
      const file = post.get(type);
      message.attach(type, file.textOf('id'), file.textOf('filename'), file.textOf('mime_type'));
    }
    found.push(message.toString());
  }
}

/** Reads a batch. States of deliveries have no message. */
export function parse_incoming(): i32 {
  const input = readInput();
  if (input.kind != Kind.Object) return 1;
  const found: string[] = [];
  const entries = input.get('entry');
  for (let i = 0; i < entries.items.length; i++) {
    const changes = entries.at(i).get('changes');
    for (let j = 0; j < changes.items.length; j++) readMessages(changes.at(j).get('value'), found);
  }
  return respondMessages(found);
}

function isNumber(text: string): bool {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) < 0x30 || text.charCodeAt(i) > 0x39) return false;
  return text.length > 0;
}

/** Writes a text with reply buttons: at most three, with short titles. */
function interactiveOf(text: string, buttons: JsonValue): string {
  const keys: string[] = [];
  for (let i = 0; i < buttons.items.length && i < 3; i++) {
    const button = buttons.at(i);
    const reply = new JsonObject().text('id', button.textOf('value')).text('title', button.textOf('label'));
    keys.push(new JsonObject().text('type', 'reply').raw('reply', reply.toString()).toString());
  }
  const body = new JsonObject().text('text', text.substring(0, 1024));
  const action = new JsonObject().raw('buttons', '[' + keys.join(',') + ']');
  const shown = new JsonObject().text('type', 'button').raw('body', body.toString());
  return shown.raw('action', action.toString()).toString();
}

export function format_outgoing(): i32 {
  const input = readInput();
  const phone = input.get('reply_to').textOf('phone_number_id');
  if (!isNumber(phone)) return 1;
  const body = new JsonObject().text('messaging_product', 'whatsapp').text('recipient_type', 'individual');
  const text = input.textOf('text');
  const buttons = input.get('buttons');
  const hasButtons = buttons.items.length > 0;
  body.text('to', input.textOf('peer')).text('type', hasButtons ? 'interactive' : 'text');
  if (hasButtons) body.raw('interactive', interactiveOf(text, buttons));
  else body.raw('text', new JsonObject().text('body', text).toString());
  const headers = new JsonObject().text('authorization', 'Bearer {token}');
  return respondRequest('/v23.0/' + phone + '/messages', headers, body.toString());
}
