import type { DashboardWorld } from './dashboard-world.js';
import { createApiCaller, waitForValue } from './stack-under-test.js';

/** Names of what is made, so that a spec can take long ones. */
export interface ContentNames {
  readonly chat: string;
  readonly folder: string;
  readonly task: string;
}

const SHORT: ContentNames = { chat: 'release notes', folder: 'notes', task: 'Tide tables' };

/** Pages of one chat, file, task and plan each. */
export interface ContentPages {
  readonly chat: string;
  readonly file: string;
  readonly task: string;
  readonly plan: string;
}

/**
 * Makes a chat with an attached file and an answer, files, a plan, tasks that wait and end, and
 * messages to agents. Returns their pages.
 */
export const addContent = async (
  { stack }: Pick<DashboardWorld, 'stack'>,
  { token = '', names = SHORT }: { readonly token?: string; readonly names?: ContentNames } = {},
): Promise<ContentPages> => {
  const call = createApiCaller(() => stack.gatewayUrl);
  const send = async (method: string, path: string, body: object): Promise<Record<string, string>> => {
    const reply = await call<Record<string, string>>(token, method, path, body);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  const write = (path: string, text: string) =>
    send('PUT', `/workspaces/default/files/${path.split('/').map(encodeURIComponent).join('/')}`, { text });
  const file = `${names.folder}/notes.md`;
  await write(file, '# Notes\n\nThe first line.\n');
  await write(file, '# Notes\n\nThe first line.\nThe second line.\n');
  await write(`${names.folder}/rows.csv`, 'port,high\nHarwich,3.9\n');
  await write(`${names.folder}/tides.plan.md`, '# Tides\n\n- [ ] Add the heights\n- [x] Find a table\n');
  // An agent of its own: another one may have spent its budget.
  const helper = await send('POST', '/agents', {
    base: 'claude',
    name: 'Helper',
    capabilities: ['tide-data'],
  });
  const chats = '/workspaces/default/chats';
  const chat = await send('POST', chats, { name: names.chat, agent: helper['id'] });
  const path = `${chats}/${String(chat['id'])}`;
  await send('POST', path, { command: 'attach', path: file });
  await send('POST', path, { command: 'message', content: 'Summarise the notes' });
  for (const to of ['gpt', 'claude'])
    await send('POST', '/messages', { to: { agent: to }, type: 'AgentSpoke', content: { text: 'noon' } });
  const done = await send('POST', '/tasks', { title: names.task, prompt: 'say it', agent: helper['id'] });
  await send('POST', '/tasks', { title: `${names.task} 2`, prompt: 'wait', capabilities: ['none-has-it'] });
  await waitForValue('the ends of the chat and the task', async () => {
    const { body } = await call<{ state: string }>(token, 'GET', `/tasks/${String(done['id'])}`);
    const { body: turns } = await call<{ turns: { status: string }[] }>(
      ...([token, 'GET', `/sessions/${String(chat['sessionId'])}/turns`] as const),
    );
    return (body.state === 'completed' && turns.turns[0]?.status === 'completed') || undefined;
  });
  const pathOf = (name: string) => name.split('/').map(encodeURIComponent).join('/');
  return {
    chat: `/chats/${String(chat['id'])}`,
    file: `/files/${pathOf(file)}`,
    task: `/tasks/${String(done['id'])}`,
    plan: `/plans/${pathOf(`${names.folder}/tides.plan.md`)}`,
  };
};
