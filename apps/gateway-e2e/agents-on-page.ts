import { expect } from '@jest/globals';
import type { AgentView } from '@antiphon/contracts/agent';
import type { MockScript } from '@antiphon/testing/providers';
import type { Locator } from 'playwright-core';
import { readApi, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller } from './stack-under-test.js';

/** Model of the specs of agents. It speaks, runs and fails as the message asks. */
export class AskedModel {
  readonly #speaking = Promise.withResolvers<void>();
  readonly #running = Promise.withResolvers<void>();
  readonly script: MockScript = ({ user, toolResults }) => {
    if (user.includes('fail')) return { status: 400, body: { error: { message: 'no such thing' } } };
    if (user.includes('speak'))
      return {
        reply: { text: ['One ', 'two.'] },
        before: (piece) => (piece.includes('two') ? this.#speaking.promise : undefined),
      };
    if (user.includes('hold')) return { reply: { text: ['held'] }, before: () => this.#running.promise };
    if (user.includes('calculate') && toolResults.length === 0)
      return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }] };
    return { text: ['well'] };
  };
  /** Lets the model end what it speaks. */
  endSpeech(): void {
    this.#speaking.resolve();
  }
  /** Lets the model end what it holds. */
  release(): void {
    this.#running.resolve();
  }
}

export interface AgentSpec {
  readonly name: string;
  readonly role: string;
  readonly model: string;
  readonly capabilities: string;
}
export const AGENTS: readonly AgentSpec[] = [
  { name: 'Researcher', role: 'research', model: 'gpt-4o', capabilities: 'research, english, tides, maps' },
  { name: 'Writer', role: 'writing', model: 'gpt-4o', capabilities: 'writing' },
  { name: 'Critic', role: 'critique', model: 'gpt-4o-mini', capabilities: '' },
];

/** Agents that a spec spawns, and the pages that show them. */
export class AgentsOnPage {
  readonly #world: () => DashboardWorld;
  readonly call;
  /** Ids of the agents by their names. */
  readonly #ids = new Map([['Claude', 'claude']]);
  constructor(world: () => DashboardWorld) {
    this.#world = world;
    this.call = createApiCaller(() => this.#world().stack.gatewayUrl);
  }
  idOf(name: string): string {
    return this.#ids.get(name) ?? '';
  }
  card(name: string): Locator {
    return this.#world().page.locator(`[data-agent="${this.idOf(name)}"]`);
  }
  read(name: string): Promise<AgentView> {
    return readApi<AgentView>(this.#world(), `/api/v1/agents/${this.idOf(name)}`);
  }
  /** Spawns an agent by the dialog, and opens its page. */
  async spawnByDialog({ name, role, model, capabilities }: AgentSpec): Promise<void> {
    const { page } = this.#world();
    await page.goto('/agents?spawn=1');
    const dialog = page.getByRole('dialog', { name: 'Spawn an agent' });
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByLabel('Base').selectOption('gpt');
    await dialog.getByLabel('Role', { exact: true }).fill(role);
    await dialog.getByLabel('Provider').selectOption('openai');
    await dialog.getByLabel('Model').fill(model);
    await dialog.getByLabel('Tools').fill('calculator, echo');
    await dialog.getByLabel('Capabilities').fill(capabilities);
    await dialog.getByLabel('Project').fill('harbour');
    await dialog.getByLabel('Budget in tokens').fill('50000');
    await dialog.getByRole('button', { name: 'Spawn', exact: true }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    this.#ids.set(name, decodeURIComponent(new URL(page.url()).pathname.split('/')[2] ?? ''));
  }
  /** Spawns an agent by the API, with further fields of the request. */
  async spawn({ capabilities, ...spec }: AgentSpec, more: object = {}): Promise<void> {
    const names = capabilities.split(', ').filter((name) => name !== '');
    const body = { ...spec, base: 'gpt', capabilities: names, ...more };
    const { status, body: made } = await this.call<{ id: string }>('', 'POST', '/agents', body);
    expect([status, made]).toEqual([201, expect.anything()]);
    this.#ids.set(spec.name, made.id);
  }
  /** Sends a message in a new chat of an agent. */
  async say(name: string, message: string): Promise<void> {
    const chat = { name: `${name} ${message}`, agent: this.idOf(name), message };
    const { status, body } = await this.call('', 'POST', '/workspaces/default/chats', chat);
    expect([status, body]).toEqual([201, expect.anything()]);
  }
}
