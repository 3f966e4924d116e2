import { systemCode } from '../../../../../base/errors.ts'
import { type ListChange, UnmergeableList, mergeList } from './merge.ts'
import { stampLines } from './stamps.ts'
import { type MadeText, encodeLines, writeText } from './text.ts'

/** The list of the generation before, in its folder, and what differs. */
export interface OldList {
  readonly folder: string
  readonly file: string
  readonly change: ListChange
}

/**
 * Writes a list of stamps: that of the generation before with the change applied where that is possible, otherwise from all
 * rows. Both give equal bytes.
 */
export async function writeStamps(
  folder: string,
  rows: () => Iterable<[string, string]>,
  old: OldList | null,
): Promise<MadeText> {
  if (old !== null) {
    try {
      return await writeText(folder, mergeList(old.folder, old.file, old.change))
    } catch (error) {
      // A file of the generation before that is gone, or cannot be inflated, is as good as one that is damaged.
      const isOld = /^(ENOENT|Z_)/.test(systemCode(error) ?? '')
      if (!(error instanceof UnmergeableList) && !isOld) throw error
    }
  }
  return writeText(folder, encodeLines(stampLines(rows())))
}
