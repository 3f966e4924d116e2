import type { Page } from '../page.ts'

/** The page that asks the browser for a local key; the browser then sends it to all pages. */
export const SIGN_IN: Page = {
  path: 'sign-in',
  label: null,
  access: 'key',
  usesStatus: false,
  parameters: {},
  load: ({ ui }) => ({
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
  }),
}
