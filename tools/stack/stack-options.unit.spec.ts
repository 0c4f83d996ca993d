import { describe, expect, it } from '@jest/globals';
import { fullScale, parseArguments } from './stack-options.js';

describe('arguments of a start', () => {
  it('set the scale and the detached mode', () => {
    expect(parseArguments(['--detach', '--scale', 'gateway=3,agent=2'])).toEqual({
      detach: true,
      scale: { gateway: 3, agent: 2 },
      isHosting: false,
      notes: [],
    });
    expect(parseArguments(['--scale=memory=2'])).toEqual({
      detach: false,
      scale: { memory: 2 },
      isHosting: false,
      notes: [],
    });
  });

  it('give each service a process of its own, unless --compact hosts memory and metering', () => {
    expect(parseArguments([])).toEqual({ detach: false, scale: {}, isHosting: false, notes: [] });
    expect(parseArguments(['--compact'])).toMatchObject({ isHosting: true, notes: [] });
  });

  it('accept --separate of older scripts with a note that it has no effect', () =>
    expect(parseArguments(['--separate'])).toMatchObject({
      isHosting: false,
      notes: [expect.stringContaining('no effect')],
    }));

  it('default to one process for each service that is not named', () => {
    expect(fullScale({ gateway: 3 })).toEqual({ gateway: 3, agent: 1, sandbox: 1, metering: 1, memory: 1 });
  });

  it.each([
    [
      ['--scale', 'gatway=2'],
      'there is no service "gatway" (there are gateway, agent, sandbox, metering, memory)',
    ],
    [['--scale', 'gateway=0'], 'gateway needs a number from 1 to 16, not "0"'],
    [['--scale', 'gateway=1e1'], 'not "1e1"'],
    [['--scale', 'gateway'], 'not ""'],
    [['--scale'], 'there is no service ""'],
    [['--dettach'], 'unknown argument "--dettach"'],
    [['--compact', '--separate'], 'leave out --separate'],
    [['--compact', '--scale=metering=2'], 'leave out --separate and their --scale'],
  ])('refuses %j as bad usage', (args, message) => {
    let failure: unknown;
    try {
      parseArguments(args);
    } catch (error) {
      failure = error;
    }
    expect(failure).toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
    expect((failure as Error).message).toContain('usage: npm start');
  });
});
