import { describe, expect, it } from '@jest/globals';
import { effectiveSettings, settingKeys } from './effective-config.js';
import { loadConfig } from './load-config.js';
import { parseConfig } from './parse-config.js';
import { configKeys } from './problem-list.js';

const parse = (text: string, env = {}) =>
  parseConfig(text, { source: '/a.toml', folder: '/', homeDir: '/root', env, requireKeys: false });
const show = (text: string, workspace = 'default', env = {}) =>
  effectiveSettings(parse(text, env), workspace);
const find = (settings: ReturnType<typeof show>, key: string) =>
  settings.find((setting) => setting.key === key);

const MARKER = 'MARKER0of0a0secret';

/** A file with an entry in every list, and a marker in every setting that is a secret. */
const COMPLETE = `
[gateway]
port = 1
token = "${MARKER.padEnd(32, '!')}"
[[providers]]
name = "own"
kind = "openai"
base_url = "http://127.0.0.1/${MARKER}/v1"
api_key_env = "${MARKER}"
proxy = "http://user:${MARKER}@proxy.example:3128"
[[agents]]
id = "main"
system_prompt = "${MARKER}"
tools = ["calculator"]
budget = { usd = 0.5 }
[[agents.approvals]]
tool = "calculator"
[[agents.policy]]
tool = "calculator"
capability = "http:*"
argument = "/a"
matches = "b*"
decision = "deny"
[[agents.tool_limits]]
tool = "calculator"
[[agents]]
id = "sales"
workspace = "acme"
system_prompt = "${MARKER}"
[[channels]]
name = "mock"
base_url = "http://127.0.0.1/${MARKER}"
public_key = "${'ab'.repeat(32)}"
[[plugins]]
name = "weather"
path = "weather.wasm"
[[mcp.servers]]
name = "files"
command = "program"
args = ["${MARKER}"]
env = ["HOME"]
token_env = "${MARKER}"
[[mcp.servers]]
name = "search"
url = "http://127.0.0.1:1/mcp"
args = ["${MARKER}"]
token_env = "${MARKER}"
[[bindings]]
agent = "main"
channel = "web"
[budgets]
daily = 5
monthly = 9
[[budgets.workspaces]]
workspace = "acme"
daily = 7
[[budgets.workspaces]]
workspace = "default"
session = 3
[[prices]]
provider = "own"
model = "m"
input_per_mtok = 1.5
output_per_mtok = 2
[[parameters]]
provider = "own"
model = "m"
`;

/** Returns the key of a setting without the names of entries. */
const plain = (key: string): string => key.replaceAll(/\[[^\]]*\]/g, '[]');

describe('the keys of the effective configuration', () => {
  it('are all keys of the schema that have a value', () => {
    const all = configKeys();
    const leaves = all.filter((key) => !all.some((other) => other.startsWith(`${key}.`)));
    const keys = settingKeys().map(({ key }) => key.replaceAll('[]', ''));
    expect(keys.sort()).toEqual([...leaves].sort());
  });

  it('are secret if they are texts that the schema does not permit to show', () => {
    const secret = settingKeys().filter(({ isSecret }) => isSecret);
    expect(secret.map(({ key }) => key).sort()).toEqual([
      'agents[].system_prompt',
      'channels[].base_url',
      'channels[].public_key',
      'gateway.token',
      'mcp.servers[].args',
      'mcp.servers[].token_env',
      'providers[].api_key_env',
      'providers[].base_url',
      'providers[].proxy',
    ]);
  });

  it('each occur in the settings of a file with an entry in every list', () => {
    const keys = new Set(parse(COMPLETE).settings.map(({ key }) => plain(key)));
    expect([...keys].sort()).toEqual(
      settingKeys()
        .map(({ key }) => key)
        .sort(),
    );
  });
});

describe('the effective configuration', () => {
  it('has no secret, and says of each whether it is set', () => {
    const settings = show(COMPLETE, 'acme').concat(show(COMPLETE));
    expect(JSON.stringify(settings)).not.toContain(MARKER);
    const secret = settings.filter(({ isSecret }) => isSecret);
    expect(new Set(secret.map(({ value }) => value))).toEqual(new Set(['set']));
    expect(find(show(''), 'gateway.token')).toMatchObject({ value: 'not set', isSecret: true });
  });

  it('says whether a value is from the file or a default, in the unit of the file', () => {
    const settings = show(COMPLETE);
    expect(find(settings, 'gateway.port')).toMatchObject({ value: 1, origin: 'file' });
    expect(find(settings, 'gateway.host')).toMatchObject({ value: '127.0.0.1', origin: 'default' });
    expect(find(settings, 'agents[main].model')).toMatchObject({ value: 'gpt-4o', origin: 'default' });
    expect(find(settings, 'agents[main].budget.usd')).toMatchObject({ value: 0.5, origin: 'file' });
    expect(find(settings, 'prices[own m].input_per_mtok')).toMatchObject({ value: 1.5, origin: 'file' });
    expect(find(settings, 'prices[openai gpt-4o].input_per_mtok')).toMatchObject({ origin: 'default' });
  });

  it('names the environment as the origin of a token and of the default provider', () => {
    const env = { ANTIPHON_GATEWAY_TOKEN: MARKER.padEnd(32, '!'), OPENAI_API_KEY: MARKER };
    const config = loadConfig({ env, cwd: '/nowhere', homeDir: '/nowhere' });
    const settings = effectiveSettings(config, 'default');
    expect(JSON.stringify(settings)).not.toContain(MARKER);
    expect(find(settings, 'gateway.token')).toMatchObject({ value: 'set', origin: 'environment' });
    expect(find(settings, 'providers[openai].kind')).toMatchObject({ origin: 'environment' });
    expect(find(settings, 'agents[main].tools')).toMatchObject({
      value: ['echo', 'calculator', 'ls', 'read', 'search'],
    });
  });

  it('has only the entries of the workspace, and its own limits instead of the general ones', () => {
    const text = JSON.stringify(show(COMPLETE, 'acme'));
    expect(text).not.toContain('agents[main]');
    expect(text).not.toContain('budgets.workspaces[default]');
    const acme = show(COMPLETE, 'acme');
    expect(find(acme, 'agents[sales].id')).toMatchObject({ value: 'sales' });
    expect(find(acme, 'budgets.workspaces[acme].daily')).toMatchObject({ value: 7, origin: 'file' });
    expect(find(acme, 'budgets.workspaces[acme].monthly')).toMatchObject({ value: 9, origin: 'file' });
    expect(find(acme, 'budgets.daily')).toBeUndefined();
    expect(find(show(COMPLETE, 'globex'), 'budgets.daily')).toMatchObject({ value: 5 });
  });
});
