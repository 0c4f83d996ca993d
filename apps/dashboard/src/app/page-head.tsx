import { useEffect, useRef, type ReactNode } from 'react';
import css from './shell.module.css';

interface PageHeadProps {
  readonly title: string;
  /** The question that the page answers. */
  readonly question?: string;
  /** Title of the tab, where it says more: `failed · run 12 · Runs`. */
  readonly tabTitle?: string;
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}

let isFirst = true;

/** Heading of a page. It gets the focus when the page changes, and names the tab. */
export const PageHead = ({ title, question, tabTitle, actions, children }: PageHeadProps) => {
  const heading = useRef<HTMLHeadingElement>(null);
  const tab = `${tabTitle ?? title} · Antiphon`;
  useEffect(() => {
    document.title = tab;
  }, [tab]);
  useEffect(() => {
    // The first page of a tab leaves the focus at its top, so that Tab finds the skip link.
    if (!isFirst) heading.current?.focus({ preventScroll: true });
    isFirst = false;
  }, []);
  return (
    <header className={css.pageHead}>
      <div className={css.pageTitle}>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {question && <p>{question}</p>}
        {children}
      </div>
      {actions && <div className={css.pageActions}>{actions}</div>}
    </header>
  );
};
