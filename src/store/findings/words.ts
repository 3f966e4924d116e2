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

/** Why tags have no findings although the settings have them judged. */
export const NOT_JUDGED =
  'the tags are not judged yet: that begins with the first catalog and records'

/** The settings that have tags judged. */
interface JudgingSettings {
  readonly match: { readonly tags: boolean }
  readonly views: { readonly query: boolean }
}

/** Returns why tags are not judged by the settings; null: they are. */
export function whyNoTags({ match, views }: JudgingSettings): string | null {
  if (match.tags && views.query) return null
  return `this mirror judges no tags: ${match.tags ? 'views.query' : 'match.tags'} is off in its settings`
}
