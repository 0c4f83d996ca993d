import { readApi, type DashboardWorld } from './dashboard-world.js';
import { readEvents, type LoggedEvent } from './stack-under-test.js';

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly sessionId: string;
}

/** Chats on the page of a dashboard, and their events by the API. */
export const createChatsOnPage = (world: () => DashboardWorld) => {
  const page = () => world().page;
  const field = () => page().getByRole('textbox', { name: 'Message' });
  const button = (name: string) => page().getByRole('button', { name, exact: true });
  const said = (text: string) => page().getByRole('feed').getByText(text, { exact: true });
  const send = async (text: string): Promise<void> => {
    await field().fill(text);
    await page().keyboard.press('Enter');
  };

  /** Begins a chat, and waits until it has an address. Returns the id of the chat. */
  const beginChat = async (text: string): Promise<string> => {
    await page().goto('/chats/new');
    await send(text);
    await page().waitForURL(/\/chats\/[0-9a-f-]{36}$/);
    return page().url().slice(-36);
  };

  const chatOf = async (id: string): Promise<Listed> => {
    const { chats } = await readApi<{ chats: Listed[] }>(
      world(),
      '/api/v1/workspaces/default/chats?limit=200',
    );
    const found = chats.find((chat) => chat.id === id);
    if (!found) throw new Error(`there is no chat ${id}`);
    return found;
  };
  const eventsOf = async (chat: string): Promise<LoggedEvent[]> =>
    readEvents(world().stack, { stream: `session-${(await chatOf(chat)).sessionId}` });
  return { field, button, said, send, beginChat, chatOf, eventsOf };
};
