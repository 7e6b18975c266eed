// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/serin-dev/serin/bench/sim"
)

// colours distinguish tolerances, also for readers who see few colours and in
// print: the palette of Okabe and Ito.
var colours = map[float64]color.RGBA{
	.001: {R: 0x00, G: 0x72, B: 0xB2, A: 0xFF},
	.005: {R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF},
	.02:  {R: 0x00, G: 0x9E, B: 0x73, A: 0xFF},
}

const width, height = 18 * vg.Centimeter, 12 * vg.Centimeter

// Detectable draws the smallest difference that is found by the number of
// requests, both on a logarithmic scale.
func Detectable(lines []sim.Detectable, out io.Writer) error {
	p, err := detectablePlot(lines)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	_, err = canvas.WriteTo(out)
	return err
}

func detectablePlot(lines []sim.Detectable) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "The smallest difference that is found in nine of ten releases"
	p.X.Label.Text = "requests that the canary answered (a tenth of all)"
	p.Y.Label.Text = "how much more often the canary fails"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = powersOfTen(func(x float64) string {
		if math.Log10(x) != math.Floor(math.Log10(x)) {
			return "" // there is no room for more
		}
		return thousands(x)
	})
	p.Y.Tick.Marker = powersOfTen(func(x float64) string { return strconv.FormatFloat(100*x, 'g', 6, 64) + " pp" })
	p.Add(plotter.NewGrid())
	// Text to the right of its line: fonts of readers differ in width.
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(2)
	for _, line := range lines {
		drawn, err := plotter.NewLine(points(line))
		if err != nil {
			return nil, fmt.Errorf("tolerance %v, base %v: %w", line.Tolerance, line.Base, err)
		}
		drawn.Color, drawn.Width = colours[line.Tolerance], vg.Points(1.6)
		if line.Base > .001 {
			drawn.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(drawn)
		p.Legend.Add(fmt.Sprintf("tolerance %g pp, stable fails %g %%", 100*line.Tolerance, 100*line.Base), drawn)
	}
	for _, font := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		font.Variant = "Sans"
	}
	return p, nil
}

// points leaves out where nothing is found.
func points(line sim.Detectable) plotter.XYs {
	var xy plotter.XYs
	for i, effect := range line.Effects {
		if effect < 1 {
			xy = append(xy, plotter.XY{X: line.Requests[i], Y: effect})
		}
	}
	return xy
}

// thousands writes a whole number with a space before each three digits.
func thousands(x float64) string {
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// powersOfTen are the marks of a logarithmic axis, named by the function.
type powersOfTen func(float64) string

// Ticks marks and names the powers of ten, twice and five times them.
func (name powersOfTen) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for exponent := math.Floor(math.Log10(low)); exponent <= math.Ceil(math.Log10(high)); exponent++ {
		power := math.Pow(10, exponent)
		for _, times := range []float64{1, 2, 5} {
			ticks = append(ticks, plot.Tick{Value: times * power, Label: name(times * power)})
		}
	}
	return ticks
}
