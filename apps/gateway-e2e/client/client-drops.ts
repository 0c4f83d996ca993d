import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { sleep } from '@antiphon/kernel';
import { effectiveFrames, followSession, type StreamedFrame } from '@antiphon/testing/client';
import { createSeededRandom, type SeededRandom } from '@antiphon/testing/load';
import { createFaultyLink, type FaultyLink } from '@antiphon/testing/network';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import { launchChromium } from '../chromium.js';
import { createSlowModel } from '../dropped-clients.js';
import { readEvents, startQuickStack, twoVendorConfig, type LoggedEvent } from '../stack-under-test.js';
import { useClient, type SeenByClient, type SpecHooks, type UseClientOptions } from './use-client.js';

const LIBRARY = fileURLToPath(new URL('../../../libs/client/dist/', import.meta.url));
const PAGE = '/client-under-test/';

/** Three gateways behind links that lose connections. */
export interface DropWorld {
  readonly stack: TestStack;
  readonly random: SeededRandom;
  readonly mock: MockModel;
  /** One link to each gateway. */
  readonly links: readonly FaultyLink[];
  /** A link that chooses a gateway for each connection, as a load balancer does. */
  readonly balancer: FaultyLink;
  stop(): Promise<void>;
}

export const startDropWorld = async (seed: number): Promise<DropWorld> => {
  const random = createSeededRandom(seed);
  const mock = await startMockModel(createSlowModel(random));
  const stack = await startQuickStack(twoVendorConfig(mock.url), { gateway: 3, agent: 2 });
  const ports = stack.wsUrls().map((url) => Number(new URL(url).port));
  const links = await Promise.all(ports.map((targetPort) => createFaultyLink({ targetPort })));
  const balancer = await createFaultyLink({ targetPort: () => random.pick(ports) });
  const stop = async (): Promise<void> => {
    await Promise.all([...links, balancer].map((link) => link.close()));
    await stack.stop();
    await mock.close();
  };
  return { stack, random, mock, links, balancer, stop };
};

export type Runtime = 'Node' | 'a browser';

const urlOf = ({ port }: FaultyLink): string => `http://127.0.0.1:${port}`;

const runInNode = async (options: UseClientOptions, hooks: SpecHooks): Promise<SeenByClient> => {
  Object.assign(globalThis, hooks);
  return useClient({ ...options, library: '@antiphon/client' });
};

/**
 * Runs the program on a page of the gateway's own origin. The gateway does not serve the files of
 * the library, but its WebSocket and requests reach it with the page's `Origin`.
 */
const runInBrowser = async (options: UseClientOptions, hooks: SpecHooks): Promise<SeenByClient> => {
  const [origin = ''] = options.urls;
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const failures: string[] = [];
    page.on('pageerror', (error) => failures.push(error.message));
    await page.route(`${origin}${PAGE}**`, async (route) => {
      const name = new URL(route.request().url()).pathname.slice(PAGE.length);
      const body = await readFile(LIBRARY + name, 'utf8');
      return route.fulfill({ contentType: 'text/javascript', body });
    });
    // A page that the gateway serves: Chromium lets no intercepted page connect to loopback.
    await page.goto(`${origin}/healthz`);
    await page.exposeFunction('isOver', hooks.isOver);
    await page.exposeFunction('readLastPosition', hooks.readLastPosition);
    const seen = await page.evaluate(useClient, { ...options, library: `${PAGE}index.js` });
    if (failures.length > 0) throw new Error(failures.join('\n'));
    return seen;
  } finally {
    await browser.close();
  }
};

/** Resets connections at random moments until `isOver`. */
const dropConnections = async (
  links: readonly FaultyLink[],
  random: SeededRandom,
  isOver: () => boolean,
): Promise<void> => {
  while (!isOver()) {
    await sleep(random.between(30, 250));
    for (const link of links) link.reset(() => random.below(2) === 0);
  }
};

export interface DropRun {
  readonly seen: SeenByClient;
  readonly events: readonly LoggedEvent[];
}

/** Runs the program in a runtime until `drops` of its connections were lost in mid-stream. */
export const runThroughDrops = async (
  { stack, random, links, balancer }: DropWorld,
  runtime: Runtime,
  drops: number,
): Promise<DropRun> => {
  const used = runtime === 'Node' ? links : [balancer];
  let isDone = false;
  const hooks: SpecHooks = {
    isOver: (count) => Promise.resolve((isDone ||= count >= drops)),
    readLastPosition: async () => (await readEvents(stack)).at(-1)?.position ?? 0,
  };
  const peers = [0, 1, 2, 3].map((n) => `${runtime} ${n}`);
  const options = { library: '', urls: used.map(urlOf), peers };
  const run = runtime === 'Node' ? runInNode(options, hooks) : runInBrowser(options, hooks);
  run.catch(() => (isDone = true));
  await dropConnections(used, random, () => isDone);
  const seen = await run;
  return { seen, events: await readEvents(stack) };
};

/** Returns the frames that count, without `accepted`, whose offset depends on the connection. */
export const assemble = (frames: readonly StreamedFrame[]): string =>
  effectiveFrames(frames)
    .filter(({ event }) => event !== 'accepted')
    .map(({ event, data, offset }) => `${offset} ${event} ${JSON.stringify(data)}\n`)
    .join('');

/** Reads a finished session over a connection that is not lost, up to an offset. */
export const readUninterrupted = async (
  { stack }: DropWorld,
  sessionId: string,
  lastOffset: number,
): Promise<string> => {
  const reader = followSession({ sessionId, nextUrl: () => stack.wsUrl, nextCut: () => null });
  await reader.waitForOffset(lastOffset);
  await reader.stop();
  return assemble(reader.frames);
};
