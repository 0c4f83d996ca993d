import { lazy, Suspense, useMemo } from 'react';
import { diffTexts } from '../../data/text-diff.js';
import { Diff } from '../../ui/diff.js';
import { Loading, ProblemBox, css as ui } from '../../ui/ui.js';
import { useContent, type ContentPlace } from './use-content.js';

const Sides = lazy(async () => ({ default: (await import('./merge.js')).Sides }));

interface VersionDiffProps {
  /** Null for a file that did not exist. */
  readonly before: ContentPlace | null;
  /** Null for a file that does not exist any more. */
  readonly after: ContentPlace | null;
  readonly label: string;
  /** Shows the texts side by side instead of one list of lines. */
  readonly isSplit?: boolean;
}

interface TextsProps extends Pick<VersionDiffProps, 'label' | 'isSplit'> {
  readonly first: string;
  readonly second: string;
}

const Texts = ({ first, second, label, isSplit = false }: TextsProps) => {
  const diff = useMemo(() => (isSplit ? '' : diffTexts(first, second)), [first, second, isSplit]);
  if (first === second) return <p className={ui.muted}>The bytes of both versions are equal.</p>;
  if (isSplit)
    return (
      <Suspense fallback={<Loading what="the versions" />}>
        <section aria-label={label}>
          <Sides
            before={{ text: first, label: 'Text before' }}
            after={{ text: second, label: 'Text after' }}
          />
        </section>
      </Suspense>
    );
  if (diff === null) return <p className={ui.muted}>The versions differ too much for a list of lines.</p>;
  return <Diff text={diff} label={label} />;
};

const NOTHING = { kind: 'text', text: '' } as const;

/** Shows what differs between two versions of a file. */
export const VersionDiff = ({ before, after, ...look }: VersionDiffProps) => {
  const [old, now] = [useContent(before, ''), useContent(after, '')];
  const problem = old.problem ?? now.problem;
  if (problem) return <ProblemBox problem={problem} retry={old.problem ? old.retry : now.retry} />;
  const [first, second] = [before ? old.content : NOTHING, after ? now.content : NOTHING];
  if (!first || !second) return <Loading what="the versions" />;
  if (first.kind !== 'text' || second.kind !== 'text')
    return <p className={ui.muted}>One of the versions is no text, so no lines are compared.</p>;
  return <Texts first={first.text} second={second.text} {...look} />;
};
