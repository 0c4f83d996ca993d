import { useRead } from './use-read.js';

/** Returns the number of approvals that wait for a decision. */
export const usePendingApprovals = (): number => {
  const { data } = useRead(
    'listApprovals',
    { query: { status: 'pending', limit: 50 } },
    { changesOn: ({ type }) => type.startsWith('Approval'), hasPast: false },
  );
  return data?.approvals.length ?? 0;
};
