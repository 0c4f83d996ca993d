import { createInterface, type Interface } from 'node:readline';
import type { Readable } from 'node:stream';

const ANSWER = /^(y|yes|n|no)$/i;
const PROMPT = 'approve? [y/n] ';
export const ANSWER_HELP = 'type y or n, or /cancel to stop the answer';
export const ANSWERED = 'the approval is decided already: nothing was sent';
export const TOO_EARLY = 'this line came before the next approval was shown: nothing was sent';

export interface ChatInputOptions {
  readonly input: Readable;
  /** Prints a prompt; prints nothing where the input is no terminal. */
  readonly prompt: (text: string) => void;
  readonly note: (text: string) => void;
  readonly cancel: () => void;
}

interface Question {
  readonly id: string;
  readonly show: () => void;
  readonly resolve: (isApproved: boolean | null) => void;
}

/**
 * Lines of a person: messages, and answers to approvals. Only a line that arrives after an approval
 * was shown answers it. Approvals are shown one after another.
 */
export class ChatInput {
  readonly #options: ChatInputOptions;
  readonly #lines: Interface;
  readonly #typed: string[] = [];
  readonly #questions: Question[] = [];
  #takeMessage: ((line: string | null) => void) | null = null;
  #isClosed = false;
  /** True from the withdrawal of the shown question to the next line, which may be its answer. */
  #isWithdrawn = false;
  /** True from an answer until the next question is shown. */
  #isNextHidden = false;

  constructor(options: ChatInputOptions) {
    this.#options = options;
    this.#lines = createInterface({ input: options.input, terminal: false });
    this.#lines.on('line', (line) => this.#receive(line));
    this.#lines.on('close', () => {
      this.#isClosed = true;
      this.#takeMessage?.(null);
      for (const { resolve } of this.#questions.splice(0)) resolve(null);
    });
  }

  /** Returns the next line that answers no approval; null at the end of the input. */
  nextMessage(): Promise<string | null> {
    if (this.#questions.length === 0) this.#options.prompt('> ');
    const typed = this.#typed.shift();
    if (typed !== undefined) return Promise.resolve(typed);
    if (this.#isClosed) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#takeMessage = (line) => {
        this.#takeMessage = null;
        resolve(line);
      };
    });
  }

  /** Shows an approval and returns its answer; null if it was withdrawn or the input has ended. */
  ask(id: string, show: () => void): Promise<boolean | null> {
    return new Promise((resolve) => {
      this.#questions.push({ id, show, resolve });
      if (this.#questions.length === 1) this.#showFirst();
    });
  }

  /** Removes the question of an approval that needs no answer any more. */
  withdraw(id: string): void {
    const at = this.#questions.findIndex((question) => question.id === id);
    if (at === -1) return;
    this.#isWithdrawn ||= at === 0;
    this.#questions.splice(at, 1)[0]?.resolve(null);
    if (at === 0) this.#showFirst();
  }

  close(): void {
    this.#lines.close();
  }

  #showFirst(): void {
    const [question] = this.#questions;
    if (question === undefined) {
      if (this.#takeMessage) this.#options.prompt('> ');
      return;
    }
    question.show();
    if (this.#isClosed) this.#questions.shift()?.resolve(null);
    else this.#options.prompt(PROMPT);
  }

  #receive(line: string): void {
    const text = line.trim();
    const isLate = this.#isWithdrawn && ANSWER.test(text);
    this.#isWithdrawn = false;
    if (isLate) this.#options.note(ANSWERED);
    const [question] = this.#questions;
    if (question && this.#isNextHidden) return this.#options.note(TOO_EARLY);
    if (question) return isLate ? this.#options.prompt(PROMPT) : this.#answer(question, text);
    if (isLate) return;
    if (this.#takeMessage) this.#takeMessage(line);
    else this.#typed.push(line);
  }

  #answer(question: Question, text: string): void {
    if (!ANSWER.test(text)) {
      if (text === '/cancel') this.#options.cancel();
      else this.#options.note(ANSWER_HELP);
      this.#options.prompt(PROMPT);
      return;
    }
    this.#questions.shift();
    question.resolve(/^y/i.test(text));
    if (this.#questions.length === 0) return this.#showFirst();
    // Lines that are here already were typed before the next question was shown.
    this.#isNextHidden = true;
    setImmediate(() => {
      this.#isNextHidden = false;
      this.#showFirst();
    });
  }
}
