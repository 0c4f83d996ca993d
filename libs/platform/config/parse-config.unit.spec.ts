import { describe, expect, it } from '@jest/globals';
import { configProblems, parseConfig, redactedConfig, renderConfigErrors } from '@antiphon/config';
import type { AntiphonConfig, ConfigProblem, Environment } from '@antiphon/config';

const parse = (text: string, env: Environment = {}, requireKeys = true): AntiphonConfig =>
  parseConfig(text, { source: '/etc/antiphon.toml', folder: '/etc', homeDir: '/root', env, requireKeys });

const problems = (text: string, env: Environment = {}): readonly ConfigProblem[] => {
  try {
    parse(text, env);
  } catch (error) {
    return configProblems(error);
  }
  return [];
};
const rendered = (text: string): string => {
  try {
    parse(text);
  } catch (error) {
    return renderConfigErrors(error);
  }
  return '';
};

// @shows L7
describe('defaults', () => {
  it('listen on loopback, know no token and no limit, and have one agent with the bundled tools', () =>
    expect(parse('')).toMatchObject({
      gateway: {
        host: '127.0.0.1',
        token: null,
        trustedProxies: [],
        allowedOrigins: [],
        loopbackWithoutToken: true,
        headerTimeoutMs: 10_000,
        bodyTimeoutMs: 30_000,
      },
      providers: [{ kind: 'scripted' }],
      agents: [
        {
          id: 'main',
          provider: 'scripted',
          tools: ['echo', 'calculator', 'ls', 'read', 'search'],
          maxIterations: 10,
        },
      ],
      budgets: { session: null, daily: null, monthly: null },
      memory: { episodicWindow: 5, semanticEnabled: true },
      retention: { eventsDays: 30, idempotencyDays: 7, metricsDays: 30, stateChangesDays: 31 },
      messages: { maxHops: 8 },
    }));

  it.each([
    [{ OPENROUTER_API_KEY: 'c', OPENAI_API_KEY: 'b', ANTHROPIC_API_KEY: 'a' }, 'anthropic'],
    [{ OPENROUTER_API_KEY: 'c', OPENAI_API_KEY: 'b', ANTHROPIC_API_KEY: '' }, 'openai'],
    [{ OPENROUTER_API_KEY: 'c' }, 'openrouter'],
  ])('take the provider whose key is in the environment', (env, kind) => {
    const { providers, agents } = parse('', env);
    expect(providers).toEqual([expect.objectContaining({ name: kind, kind })]);
    expect(agents[0]?.provider).toBe(kind);
  });
});

describe('a valid file', () => {
  it('gives money as integer micro-dollars, digit by digit', () => {
    const { budgets } = parse(
      '[budgets]\nsession_usd = 0.1\ndaily_usd = 3\nmonthly_usd = 1_234.567_891\nsession = 0',
    );
    expect(budgets).toMatchObject({
      session: 0,
      sessionMicroUsd: 100_000,
      dailyMicroUsd: 3_000_000,
      monthlyMicroUsd: 1_234_567_891,
    });
  });

  it('puts its own prices before the built-in ones', () => {
    const text = '[[prices]]\nprovider = "openai"\nmodel = "*"\ninput_per_mtok = 1.5\noutput_per_mtok = 2';
    expect(parse(text).prices[0]).toEqual({
      provider: 'openai',
      model: '*',
      inputMicroUsdPerMtok: 1_500_000,
      outputMicroUsdPerMtok: 2_000_000,
      cacheReadMicroUsdPerMtok: null,
      cacheWriteMicroUsdPerMtok: null,
      cacheWrite1hMicroUsdPerMtok: null,
    });
    const cached = 'cache_read_per_mtok = 0\ncache_write_per_mtok = 1.875\ncache_write_1h_per_mtok = 3';
    expect(parse(`${text}\n${cached}`).prices[0]).toMatchObject({
      cacheReadMicroUsdPerMtok: 0,
      cacheWriteMicroUsdPerMtok: 1_875_000,
      cacheWrite1hMicroUsdPerMtok: 3_000_000,
    });
  });

  it('accepts a file URL for the scripted provider', () =>
    expect(
      parse('[[providers]]\nname = "s"\nkind = "scripted"\nbase_url = "file:demo.json"').providers[0],
    ).toMatchObject({ baseUrl: 'file:demo.json' }));

  it('accepts missing keys in a process that needs none', () =>
    expect(parse('[[providers]]\nname = "a"\nkind = "anthropic"', {}, false).agents[0]).toMatchObject({
      provider: 'a',
      model: 'claude-sonnet-4-5',
    }));

  it('accepts a scenario file for a scripted provider', () =>
    expect(
      problems('[[providers]]\nname = "demo"\nkind = "scripted"\nbase_url = "file:scenarios/demo.json"'),
    ).toEqual([]));

  it('attaches a fallback to the agent above it', () => {
    const text =
      '[[agents]]\nid = "a"\n[agents.fallback]\nprovider = "scripted"\nmodel = "m"\n[[agents]]\nid = "b"';
    expect(parse(text).agents.map(({ fallback }) => fallback)).toEqual([
      { provider: 'scripted', model: 'm' },
      null,
    ]);
  });
});

describe('a file with mistakes', () => {
  it('is refused with all problems at once, in order of their place', () => {
    const found = problems(
      '[gateway]\nport = "80a"\nprot = 1\n[budgets]\nsession = -5\n[[bindings]]\nagent = "x"\npeer = "p"',
    );
    expect(found.map(({ line, column, key }) => `${line}:${column} ${key}`)).toEqual([
      '2:8 gateway.port',
      '3:1 gateway.prot',
      '5:11 budgets.session',
      '7:9 bindings[0].agent',
    ]);
  });

  it('names the nearest known key, what was expected and an example', () =>
    expect(problems('[gateway]\nprot = 1')[0]).toMatchObject({
      message: 'unknown key',
      nearest: 'port',
      expected:
        'one of host, port, token, trusted_proxies, allowed_origins, loopback_without_token, header_timeout_s, body_timeout_s, heavy_wait_s, limits',
      example: 'port = 7400',
    }));

  it.each([
    ['[agent]', 'agent', 'agents'],
    ['[memory]\nepisodic = 5', 'memory.episodic', 'episodic_window'],
    ['[[agents]]\nid = "a"\nsystemPrompt = "x"', 'agents[0].systemPrompt', 'system_prompt'],
    ['[[providers]]\nname = "a"\nkind = "antropic"', 'providers[0].kind', 'anthropic'],
    ['[[agents]]\nid = "a"\nprovider = "scirpted"', 'agents[0].provider', 'scripted'],
    ['[[agents]]\nid = "helper"\n[[bindings]]\npeer="p"\nagent = "helpr"', 'bindings[0].agent', 'helper'],
  ])('%j: %s is near %s', (text, key, nearest) =>
    expect(problems(text)).toEqual([expect.objectContaining({ key, nearest })]),
  );

  it.each([
    ['[[agents]]\nid = "a"\n[[agents]]\nid = "a"', 'agents[1].id', 2],
    ['[[plugins]]\nname = "a"\npath = "x"\n[[plugins]]\nname = "a"\npath = "y"', 'plugins[1].name', 2],
    ['[[bindings]]\nagent = "main"\npeer = "p"\n[[bindings]]\nagent = "main"\npeer = "p"', 'bindings[1]', 1],
    ['[gateway]\nport = 1\nport = 2', 'gateway.port', 2],
    ['[[agents]]\nid = "b"\n[[agents]]\nid = "a"\nid = "c"', 'agents[1].id', 4],
  ])('%j: %s contradicts line %d', (text, key, line) =>
    expect(problems(text)).toEqual([
      expect.objectContaining({ key, related: expect.objectContaining({ line }) }),
    ]),
  );

  it.each([
    ['[gateway]\nport = 65536', 'gateway.port'],
    ['[gateway]\nport = 80.0', 'gateway.port'],
    ['[gateway]\ntoken = ""', 'gateway.token'],
    [`[gateway]\ntoken = "${'t'.repeat(31)}"`, 'gateway.token'],
    ['[gateway]\ntrusted_proxies = ["10.0.0.0/33"]', 'gateway.trusted_proxies[0]'],
    ['[gateway]\ntrusted_proxies = ["proxy"]', 'gateway.trusted_proxies[0]'],
    ...[
      '*',
      'null',
      'https://*.example.com',
      'https://app.example/',
      'https://app.example:443',
      'file://x',
      'app',
    ].map((origin) => [`[gateway]\nallowed_origins = ["${origin}"]`, 'gateway.allowed_origins[0]'] as const),
    ...[
      'https://APP.example',
      'https://user@app.example',
      'https://app.example?x',
      ' https://app.example',
    ].map((origin) => [`[gateway]\nallowed_origins = ["${origin}"]`, 'gateway.allowed_origins[0]'] as const),
    ['[gateway]\nloopback_without_token = "no"', 'gateway.loopback_without_token'],
    ['[gateway.limits]\nrequests_per_second = -1', 'gateway.limits.requests_per_second'],
    ['[gateway]\nhost = "192.168.1.5"', 'gateway.host'],
    ['[budgets]\nsession = nan', 'budgets.session'],
    ['[budgets]\nsession_usd = 0.0000001', 'budgets.session_usd'],
    ['[budgets]\nsession_usd = 1e3', 'budgets.session_usd'],
    ['[budgets]\nsession_usd = -0.01', 'budgets.session_usd'],
    ['[budgets]\nsession_usd = inf', 'budgets.session_usd'],
    ['[budgets]\ndaily = 9007199254740993', 'budgets.daily'],
    [
      '[[prices]]\nprovider = "a"\nmodel = "m"\ninput_per_mtok = -1\noutput_per_mtok = 1',
      'prices[0].input_per_mtok',
    ],
    ['[[plugins]]\nname = "p"\npath = "p"\ncapabilities = ["fs:/etc"]', 'plugins[0].capabilities[0]'],
    ['[[plugins]]\nname = "p"', 'plugins[0].path'],
    ...[
      ...['http:0x7f.1', 'http:0x7f.1:80', 'http:a.example:0', 'http:a.example:70000', 'http:a.example?q'],
      ...['http:a.example/../b', 'http:a.example/a%2fb', 'http:user@a.example', 'http:', 'store', 'secret:A'],
      ...['log:all', 'Clock', 'random:', 'sekret:token'],
    ].map((capability): [string, string] => [
      `[[plugins]]\nname = "p"\npath = "p"\ncapabilities = ["${capability}"]`,
      'plugins[0].capabilities[0]',
    ]),
    [
      '[[providers]]\nname = "p"\nkind = "openai-compatible"\n[[agents]]\nid = "a"\nmodel = "m"',
      'providers[0].base_url',
    ],
    [
      '[[providers]]\nname = "p"\nkind = "ollama"\nbase_url = "ftp://x"\n[[agents]]\nid = "a"\nmodel = "m"',
      'providers[0].base_url',
    ],
    ['[[providers]]\nname = "p"\nkind = "scripted"\nbase_url = "http://x"', 'providers[0].base_url'],
    ['[[providers]]\nname = "p"\nkind = "scripted"\nbase_url = "http://x"', 'providers[0].base_url'],
    ['[[providers]]\nname = "p"\nkind = "ollama"\n[[agents]]\nid = "a"', 'agents[0].model'],
    ['[[providers]]\nname = "p"\nkind = "ollama"', 'providers[0]'],
    ['[agents]\nid = "a"', 'agents'],
    ['agents = [1]', 'agents[0]'],
    ['[[bindings]]\nagent = "main"', 'bindings[0]'],
    ['a.__proto__.b = 1\n[memory]', 'a.__proto__'],
  ])('%j is refused at %s', (text, key) =>
    expect(problems(text).map((problem) => problem.key)).toContain(key),
  );

  // @shows U37
  it.each(['files.read', 'mcp:search', 'a tool', 'tool/2', 'größe', '工具', '', 'x'.repeat(65)])(
    'refuses the tool name %j, which vendors refuse, and says what a name may have',
    (tool) => {
      const [problem] = problems(`[[agents]]\nid = "a"\ntools = [${JSON.stringify(tool)}]`);
      expect(problem).toMatchObject({
        key: 'agents[0].tools[0]',
        expected: expect.stringContaining('1 to 64 letters, digits, dashes, underscores'),
      });
    },
  );

  it('turns each feature off', () => {
    const off = 'agent_runtime_v1 = false\nmemory_v1 = false\nworkers_v1 = false';
    expect(parse(`[features]\n${off}`).features).toEqual({
      agentRuntimeV1: false,
      memoryV1: false,
      workersV1: false,
    });
  });

  it('reads the days of metrics, 30 by default', () => {
    expect(parse('').retention.metricsDays).toBe(30);
    expect(parse('[retention]\nmetrics_days = 7').retention.metricsDays).toBe(7);
  });

  it('reads the budget of an agent, the hop limit and the days of changes of states', () => {
    const agent = '[[agents]]\nid = "a"\n';
    expect(parse(`${agent}[agents.budget]\nusd = 0.5`).agents[0]?.budget).toEqual({
      tokens: null,
      microUsd: 500_000,
    });
    expect(parse(agent).agents[0]?.budget).toBeNull();
    expect(parse('[messages]\nmax_hops = 3').messages).toEqual({ maxHops: 3 });
    for (const days of [0, 31, 400])
      expect(parse(`[retention]\nstate_changes_days = ${days}`).retention.stateChangesDays).toBe(days);
    expect(rendered('[retention]\nstate_changes_days = 30')).toContain('from 31');
    for (const nothing of ['tokens = 0', 'usd = 0'])
      expect(problems(`${agent}[agents.budget]\n${nothing}`)).toHaveLength(1);
  });

  it('names the variable that a provider needs', () => {
    const text =
      '[[providers]]\nname = "a"\nkind = "anthropic"\n[[providers]]\nname = "b"\nkind = "openai"\napi_key_env = "MY_KEY"';
    expect(problems(text).map(({ message }) => message)).toEqual([
      expect.stringContaining('ANTHROPIC_API_KEY'),
      expect.stringContaining('MY_KEY'),
    ]);
    expect(problems(text, { ANTHROPIC_API_KEY: 'x', MY_KEY: 'y' })).toEqual([]);
  });

  it('names the place where the text is not TOML', () =>
    expect(problems('[gateway]\nport = \n')[0]).toMatchObject({
      line: 2,
      message: expect.stringContaining('not TOML'),
    }));
});

describe('secrets', () => {
  it('are not repeated in an error', () => {
    const text =
      '[gateway]\ntoken = 99887766\n[agent]\napi_key = "sk-REAL"\n[[providers]]\nname = "a"\nkind = "openai"\napi_key_env = "sk-REAL"\nbase_url = "http://u:REAL@h/"';
    expect(rendered(text)).not.toMatch(/REAL|99887766/);
  });

  it('are redacted in the shown configuration', () => {
    const shown = redactedConfig(
      parse(`[gateway]\ntoken = "${'REAL'.repeat(8)}"\n[[agents]]\nid = "a"\nsystem_prompt = "REAL"`),
    );
    expect(JSON.stringify(shown)).not.toContain('REAL');
    expect(redactedConfig(parse('')).gateway.token).toBeNull();
    const provider = '[[providers]]\nname = "a"\nkind = "openai"\napi_key_env = "K"\n';
    const addresses = 'base_url = "http://host/v1?key=REAL"\nproxy = "http://u:REAL@proxy:1"';
    expect(JSON.stringify(redactedConfig(parse(provider + addresses, { K: 'x' })))).not.toContain('REAL');
  });
});

describe('rendering', () => {
  it('shows place, key, message, expectation and example', () =>
    expect(rendered('[gateway]\nport = 70000')).toBe(
      [
        'The configuration has a problem:',
        '',
        '/etc/antiphon.toml:2:8  gateway.port',
        '  found the integer 70000',
        '  expected a port, where 0 means any free one: an integer from 0 to 65535',
        '  for example: port = 7400',
      ].join('\n'),
    ));

  it('escapes terminal sequences', () =>
    expect(rendered('[[providers]]\nname = "a"\nkind = "\\u001b[31m"\n"\\u202e" = 1')).not.toMatch(
      /[\u001b\u202e]/,
    ));
});
