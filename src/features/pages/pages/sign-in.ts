import type { PageCall, PageView } from '../page.ts'

/** Loads the page that asks the browser for a local key; the browser then sends it to all pages. */
export function loadSignIn({ ui }: PageCall): PageView {
  return {
    title: 'Signed in',
    blocks: [
      {
        kind: 'notice',
        tone: 'good',
        title: 'The key is valid',
        text: 'Your browser sends it to these pages until you close it. Nothing is stored by the mirror.',
        links: [{ text: 'Overview', href: ui('') }],
      },
    ],
  }
}
