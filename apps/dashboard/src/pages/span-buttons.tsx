import { setParams } from '../data/router.js';
import { Button } from '../ui/ui.js';
import css from './pages.module.css';

interface SpanButtonsProps {
  /** Names and words of the spans. The first is the default, which the URL leaves out. */
  readonly spans: readonly { readonly name: string; readonly words: string }[];
  readonly current: string;
}

/** Chooses the time that the charts of a page show, in the parameter `span` of the URL. */
export const SpanButtons = ({ spans, current }: SpanButtonsProps) => (
  <div className={css.links} role="group" aria-label="Time">
    {spans.map(({ name, words }, index) => (
      <Button
        key={name}
        aria-pressed={current === name}
        onClick={() => setParams({ span: index === 0 ? null : name })}
      >
        {words}
      </Button>
    ))}
  </div>
);
