import type { Locator, Page } from 'playwright-core';
import { readApi, type DashboardWorld } from './dashboard-world.js';

/** Most bytes of a file in these specs. */
export const MOST_BYTES = 1_500_000;
/** An agent that writes files, and a low bound of their size. */
export const FILE_SETTINGS = `
[files]
max_file_bytes = ${MOST_BYTES}

[[agents]]
id = "writer"
workspace = "*"
name = "Writer"
provider = "openai"
model = "gpt-4o"
tools = ["write"]
`;

interface Entry {
  readonly path: string;
  readonly digest: string | null;
  readonly changedBy: string | null;
}
export interface Change {
  readonly version: number;
  readonly type: string;
  readonly digest: string | null;
  readonly eventPosition: number;
}

const WORKSPACE = '/api/v1/workspaces/default';
const partsOf = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

/** A file as the field of uploads takes it. */
export const uploadOf = (name: string, body: string | Buffer) => ({
  ...{ name, mimeType: 'application/octet-stream', buffer: Buffer.from(body) },
});

const editorOf = (tab: Page): Locator => tab.getByRole('textbox', { name: /^Text of/ });

/** Files of a workspace by the API, and the page that shows them. */
export class FilesOnPage {
  readonly #world: () => DashboardWorld;
  constructor(world: () => DashboardWorld) {
    this.#world = world;
  }
  addressOf(path: string): string {
    return `${this.#world().stack.gatewayUrl}${WORKSPACE}/files/${partsOf(path)}`;
  }
  put(path: string, body: string, query = ''): Promise<Response> {
    const headers = { 'content-type': 'application/octet-stream' };
    return fetch(this.addressOf(path) + query, { method: 'PUT', headers, body });
  }
  async write(path: string, body: string): Promise<void> {
    const response = await this.put(path, body);
    if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`);
  }
  async list(path: string): Promise<readonly Entry[]> {
    const address = `${WORKSPACE}/files?path=${encodeURIComponent(path)}&limit=1000`;
    return (await readApi<{ entries: Entry[] }>(this.#world(), address)).entries;
  }
  async textOf(path: string): Promise<string> {
    return (await fetch(this.addressOf(path))).text();
  }
  async historyOf(path: string): Promise<readonly Change[]> {
    const address = `${WORKSPACE}/file-history?path=${encodeURIComponent(path)}`;
    return (await readApi<{ changes: Change[] }>(this.#world(), address)).changes;
  }
  /** Returns the changes since a version, as the refusal of a stale write has them. */
  async diffSince(path: string, digest: string | null | undefined): Promise<string> {
    const response = await this.put(path, 'a stale write', `?expect=${digest}`);
    const { data } = (await response.json()) as { readonly data: { readonly diff: string } };
    return data.diff;
  }
  /** The tree of the page. */
  get tree(): Locator {
    return this.#world().page.getByRole('tree', { name: 'Files' });
  }
  row(name: string | RegExp): Locator {
    return this.tree.getByRole('treeitem', { name });
  }
  get editor(): Locator {
    return editorOf(this.#world().page);
  }
  get uploads(): Locator {
    return this.#world().page.getByLabel('Files to upload');
  }
  /** Opens the page of a file. */
  async open(path: string, query = ''): Promise<void> {
    const { page } = this.#world();
    await page.goto(`/files/${partsOf(path)}${query}`);
    await page.getByRole('heading', { level: 2, name: path, exact: true }).waitFor();
  }
  /** Replaces the text of the editor of a window, as a person types it. */
  async type(text: string, tab: Page = this.#world().page): Promise<void> {
    await editorOf(tab).click();
    await tab.keyboard.press('Control+a');
    await tab.keyboard.insertText(text);
  }
}
