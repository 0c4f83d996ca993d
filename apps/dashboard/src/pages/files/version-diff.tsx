import { useMemo } from 'react';
import { diffTexts } from '../../data/text-diff.js';
import { Diff } from '../../ui/diff.js';
import { Loading, ProblemBox, css as ui } from '../../ui/ui.js';
import { useContent, type ContentPlace } from './use-content.js';

interface VersionDiffProps {
  readonly before: ContentPlace;
  readonly after: ContentPlace;
  readonly label: string;
}

/** Shows what differs between two versions of a file. */
export const VersionDiff = ({ before, after, label }: VersionDiffProps) => {
  const [old, now] = [useContent(before, ''), useContent(after, '')];
  const problem = old.problem ?? now.problem;
  const texts =
    old.content?.kind === 'text' && now.content?.kind === 'text'
      ? [old.content.text, now.content.text]
      : null;
  const [first, second] = texts ?? [];
  const diff = useMemo(
    () => (first === undefined || second === undefined ? null : diffTexts(first, second)),
    [first, second],
  );
  if (problem) return <ProblemBox problem={problem} retry={old.problem ? old.retry : now.retry} />;
  if (!old.content || !now.content) return <Loading what="the versions" />;
  if (!texts) return <p className={ui.muted}>One of the versions is no text, so no lines are compared.</p>;
  if (diff === null) return <p className={ui.muted}>The versions differ too much for a list of lines.</p>;
  if (diff === '') return <p className={ui.muted}>The bytes of both versions are equal.</p>;
  return <Diff text={diff} label={label} />;
};
