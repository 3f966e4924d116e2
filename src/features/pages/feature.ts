import type { Feature } from '../../daemon/feature.ts'

/** Shows the mirror to people, as pages of HTML. */
export const pages: Feature = {
  name: 'pages',
  needs: ['lookup', 'scanners'],
  async daemon() {
    const { createWeb } = await import('./web.ts')
    return { answers: ({ config, version }) => ({ people: createWeb({ config, version }) }) }
  },
}
