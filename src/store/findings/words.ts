import { counted } from '../../core/text.ts'
import type { FindingChange, FindingChangeCounts } from './reads.ts'

/** Returns what changed in the findings of a tag, in words: `2 new fixes, 1 new finding`. */
export function findingWords({ fixes, found, gone, fixesGone }: FindingChangeCounts): string {
  const words = [
    fixes === 0 ? '' : `${fixes} new ${fixes === 1 ? 'fix' : 'fixes'}`,
    found === 0 ? '' : counted(found, 'new finding'),
    gone === 0 ? '' : `${counted(gone, 'finding')} gone`,
    fixesGone === 0 ? '' : `${fixesGone} without a fix now, or gone`,
  ]
  return words.filter((one) => one !== '').join(', ')
}

/** Returns one of the changes in words: `new fix: CVE-2026-1 in openssl 3.0.11`. */
export function detailWords([change, record, name, version, fixable]: FindingChange): string {
  const of = `${record} in ${name} ${version}`
  if (change === 'new') return `new finding${fixable === 1 ? ', with a fix' : ''}: ${of}`
  if (change === 'fix') return `new fix: ${of}`
  return change === 'gone' ? `gone: ${of}` : `no fix any more: ${of}`
}
