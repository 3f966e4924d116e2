import { clip } from '../../../base/text.ts'
import type { MirrorProblem } from '../../../server/status/problem.ts'
import { problemsOf } from '../../../server/status/problems.ts'
import type { Status } from '../../../base/reports/status.ts'
import { type NoticeBlock, asSentence } from '../../../answers/html.ts'
import type { PageCall } from '../page.ts'

/** Returns a notice for everything that is wrong with the mirror, with the commands that show or fix it; the worst first. */
export function problemNotices(
  { config, ui, now }: Pick<PageCall, 'config' | 'ui' | 'now'>,
  status: Status,
): NoticeBlock[] {
  return problemsOf(status, config, now).map((one) => {
    const text = detailOf(one)
    const { run } = one
    const title = `${one.subject}: ${one.text}`
    return {
      kind: 'notice',
      tone: one.level === 'failed' ? 'bad' : 'warn',
      title,
      ...(text !== '' && { text: clip(text, 600) }),
      commands: one.advice,
      ...(run !== undefined && {
        links: [{ text: `Run ${run}: what it would change`, href: ui('run', { id: run }) }],
      }),
    }
  })
}

/** More about a problem, when it began, and its effect, as sentences. */
function detailOf({ detail, since, effect }: MirrorProblem): string {
  const parts = [detail, since === null ? null : `Since ${since}`, effect]
  return parts.flatMap((part) => (part === null ? [] : asSentence(part))).join(' ')
}
