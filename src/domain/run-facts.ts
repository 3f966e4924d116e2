/** Facts of a run that list the first of something, and the fact that counts all of it. */
export const LIST_COUNTS: Readonly<Partial<Record<string, string>>> = {
  lackingIds: 'lacking',
  removedIds: 'removed',
  plannedRemovedIds: 'plannedRemoved',
  contradictions: 'contradicted',
  unusable: 'unusableEntries',
}
