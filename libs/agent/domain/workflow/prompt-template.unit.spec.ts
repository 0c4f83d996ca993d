import { describe, expect, it } from '@jest/globals';
import { referencesIn, renderPrompt } from './prompt-template.js';

const render = (prompt: string) =>
  renderPrompt(prompt, {
    input: (name) => ({ goal: 'a parser', sly: '{{nodes.a.output}}' })[name],
    output: (id) => ({ a: 'the plan: $& $1 {{inputs.goal}}' })[id],
  });

describe('a prompt', () => {
  it('gets inputs and outputs as they are', () =>
    expect(render('{{inputs.goal}} by {{ nodes.a.output }}!')).toBe(
      'a parser by the plan: $& $1 {{inputs.goal}}!',
    ));

  it('is filled once: what a model or a user wrote is no template', () =>
    expect(render('{{inputs.sly}}')).toBe('{{nodes.a.output}}'));

  it('tells what it refers to, and what it cannot', () =>
    expect(referencesIn('{{inputs.goal}} {{nodes.a-1.output}} {{nodes.a.input}} {{}} {x}')).toEqual([
      { kind: 'input', name: 'goal' },
      { kind: 'output', nodeId: 'a-1' },
      { kind: 'unknown', text: 'nodes.a.input' },
      { kind: 'unknown', text: '' },
    ]));
});
