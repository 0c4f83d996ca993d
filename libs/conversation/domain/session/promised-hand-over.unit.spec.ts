import { describe, expect, it } from '@jest/globals';
import { promisesHandOver } from './promised-hand-over.js';

describe('promisesHandOver', () => {
  it.each([
    "I'll hand you over to billing.",
    'I will now transfer you to the billing agent.',
    'Sure. I’m handing this over to our specialist.',
    "Let me connect you with the refunds team, they'll help.",
    'I am going to forward your request to Zoë.',
    'I will pass this on to the writer.',
  ])('recognises %p', (text) => expect(promisesHandOver(text)).toBe(true));

  it.each([
    'Your invoice was sent yesterday.',
    'You can hand the form to billing yourself.',
    'I will pass the salt.',
    'The moon will transfer energy to the sea.',
    'I handed it over to billing last week, and they answered: paid.',
    'We can connect two points with a line.',
  ])('ignores %p', (text) => expect(promisesHandOver(text)).toBe(false));
});
