import { describe, expect, it } from '@jest/globals';
import { referencesIn } from '@antiphon/contracts/prompt-references';
import { renderPrompt } from './prompt-template.js';

const render = (prompt: string) =>
  renderPrompt(prompt, {
    input: (name) => ({ goal: 'a parser', sly: '{{nodes.a.output}}' })[name],
    output: (id) => ({ a: 'the plan: $& $1 {{inputs.goal}}' })[id],
  });

describe('a prompt', () => {
  it('receives inputs and outputs unchanged', () =>
    expect(render('{{inputs.goal}} by {{ nodes.a.output }}!')).toBe(
      'a parser by the plan: $& $1 {{inputs.goal}}!',
    ));

  // @shows U49
  it('is rendered once, so that an input is never a template', () =>
    expect(render('{{inputs.sly}}')).toBe('{{nodes.a.output}}'));

  // @shows U49
  it.each([
    ['<a style=\\{{color: red}}>', '<a style={{color: red}}>'],
    ['\\{{inputs.goal}} is {{inputs.goal}}', '{{inputs.goal}} is a parser'],
    ['C:\\\\{{inputs.goal}}', 'C:\\a parser'],
    ['\\{{#if a}}{"b":{"c":1}}\\{{/if}}', '{{#if a}}{"b":{"c":1}}{{/if}}'],
    ['a \\ b \\n {{{x}}}', 'a \\ b \\n {{{x}}}'],
  ])('has braces of its own after a backslash: %s', (prompt, text) => {
    expect(render(prompt)).toBe(text);
    expect(referencesIn(prompt).filter(({ kind }) => kind === 'unknown')).toEqual(
      prompt.includes('{{{') ? [{ kind: 'unknown', text: 'x' }] : [],
    );
  });

  it('lists its references, unknown ones included', () =>
    expect(referencesIn('{{inputs.goal}} {{nodes.a-1.output}} {{nodes.a.input}} {{}} {x}')).toEqual([
      { kind: 'input', name: 'goal' },
      { kind: 'output', nodeId: 'a-1' },
      { kind: 'unknown', text: 'nodes.a.input' },
      { kind: 'unknown', text: '' },
    ]));
});
